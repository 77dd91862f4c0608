import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { CliFailure, muster, root } from '../tools/suite/cli.ts';
import { Program } from '../tools/suite/program.ts';
import { test as base, type Stage } from './harness.ts';

/**
 * Machines that share a network. Each machine is a network namespace, and the first namespace contains the bridge that
 * connects them. Requires root.
 */
export class Networks {
  readonly #stage: Stage;
  readonly #names = new Map<string, string>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** @param machines addresses with prefix length, by machine name; the first machine contains the bridge */
  create(machines: Readonly<Record<string, readonly string[]>>): void {
    removeLeftOvers();
    const [hub = ''] = Object.keys(machines);
    for (const [name, addresses] of Object.entries(machines)) {
      const namespace = `${prefix}${process.pid}-${name}`;
      ip('netns', 'add', namespace);
      this.#names.set(name, namespace);
      ip('-n', namespace, 'link', 'set', 'lo', 'up');
      if (name === hub) ip('-n', namespace, 'link', 'add', 'lan', 'type', 'bridge', 'forward_delay', '0');
      else {
        const end = `to-${name}`;
        ip('-n', this.#in(hub), 'link', 'add', end, 'type', 'veth', 'peer', 'name', 'lan', 'netns', namespace);
        ip('-n', this.#in(hub), 'link', 'set', end, 'master', 'lan', 'up');
      }
      ip('-n', namespace, 'link', 'set', 'lan', 'up');
      for (const address of addresses)
        ip(
          '-n',
          namespace,
          'addr',
          'add',
          address,
          ...(address.includes(':') ? ['nodad'] : ['brd', '+']),
          'dev',
          'lan',
        );
    }
  }

  #in(machine: string): string {
    const namespace = this.#names.get(machine);
    if (namespace === undefined) throw new Error(`the network has no machine "${machine}"`);
    return namespace;
  }

  /** Starts `muster` on a machine. The stage kills the process when the test finishes. */
  run(machine: string, args: readonly string[]): Program {
    const command = ['netns', 'exec', this.#in(machine), muster, ...args];
    const env = this.#stage.environment();
    return this.#stage.watch(
      new Program({ name: `${args[0]} on ${machine}`, command: 'ip', args: command, cwd: root, env }),
    );
  }

  /**
   * Runs `muster` with `--json` on a machine until it exits.
   * @returns the parsed output; null if it is empty
   * @throws CliFailure with its error message
   */
  muster<T>(machine: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<T> {
    return new Promise((resolve, reject) => {
      const words = ['netns', 'exec', this.#in(machine), muster, ...args, '--json'];
      execFile('ip', words, { cwd: root, env: this.#stage.environment(env) }, (error, stdout, stderr) => {
        if (error) reject(new CliFailure(stderr.trim() || error.message, null));
        else resolve((stdout.trim() === '' ? null : JSON.parse(stdout)) as T);
      });
    });
  }

  /** Removes the names of the namespaces. The kernel deletes a namespace once its last process has exited. */
  end(): void {
    for (const namespace of this.#names.values()) ip('netns', 'delete', namespace);
    this.#names.clear();
  }
}

const prefix = 'muster-e2e-';

const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Removes leftovers of killed test runs. */
function removeLeftOvers(): void {
  for (const [namespace, pid] of ip('netns', 'list').matchAll(new RegExp(`^${prefix}(\\d+)-\\S+`, 'gm')))
    if (!existsSync(`/proc/${pid}`)) ip('netns', 'delete', namespace);
}

/** Runs each test with its own network of machines. */
export const test = base.extend<{ networks: Networks }>({
  networks: async ({ stage }, use) => {
    const networks = new Networks(stage);
    try {
      await use(networks);
    } finally {
      networks.end();
    }
  },
});
