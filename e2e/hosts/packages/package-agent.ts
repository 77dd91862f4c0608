import type { Reported } from '../../../agent/src/converge/test/agent.ts';
import { operation } from '../../../agent/src/converge/test/desired.ts';
import { DrivenAgent } from '../driven-agent.ts';
import type { Machine } from '../machine.ts';
import { type Declared, resolved } from '../subjects/subject.ts';

export type Package = string | [name: string, fields: object];

/** A package manager, and how tests run it as a user does. */
export interface PackageManager {
  kind: keyof Declared;
  program: string;
  /** Shell text that prints a line for each installed package, with its name and version. */
  installed: string;
  /** Shell text that installs the packages whose names follow. */
  install: string;
  /** Shell text that removes the packages whose names follow. */
  remove: string;
  /** Shell text that succeeds once the script of the package `slow` runs. */
  runsSlow: string;
  /** Text that the program prints if another process holds the lock. */
  lockedText: string;
}

/** An agent that applies packages of one kind on a test host, next to users that run the package manager. */
export class PackageAgent {
  readonly machine: Machine;
  readonly agent: DrivenAgent;
  readonly manager: PackageManager;

  private constructor(machine: Machine, agent: DrivenAgent, manager: PackageManager) {
    this.machine = machine;
    this.agent = agent;
    this.manager = manager;
  }

  static async start(machine: Machine, manager: PackageManager): Promise<PackageAgent> {
    return new PackageAgent(machine, await DrivenAgent.start(machine), manager);
  }

  /** Returns the packages as resources, each with its name as its id. */
  of(...packages: readonly Package[]) {
    return packages.map((entry) => {
      const [name, fields] = typeof entry === 'string' ? [entry, {}] : entry;
      return { ...resolved({ [this.manager.kind]: { name, ...fields } }), id: name };
    });
  }

  apply(...packages: readonly Package[]): Promise<Reported> {
    return this.agent.run(operation('apply', this.of(...packages)));
  }

  plan(...packages: readonly Package[]): Promise<Reported> {
    return this.agent.run(operation('plan', this.of(...packages)));
  }

  /** Returns the installed packages, with their versions. */
  async installed(): Promise<string[]> {
    return (await this.machine.sh(this.manager.installed)).split('\n').filter(Boolean);
  }

  async names(): Promise<string[]> {
    return (await this.installed()).map((line) => line.split(' ')[0] ?? '');
  }

  async remove(...names: string[]): Promise<void> {
    await this.machine.sh(`${this.manager.remove} ${names.join(' ')}`);
  }

  /**
   * Replaces a program with shell text, in which `$args` contains the arguments, with a space on each side. If the text
   * does not exit, the program itself follows.
   */
  async replace(text: string, program = this.manager.program): Promise<void> {
    await this.machine.run(['sh', '-euc', `cat > /usr/local/sbin/${program}; chmod 755 /usr/local/sbin/${program}`], {
      input: `#!/bin/sh
args=" $* "
${text}
exec /usr/bin/${program} "$@"
`,
    });
  }

  async restorePrograms(): Promise<void> {
    await this.machine.sh('rm -f /usr/local/sbin/*');
  }

  /**
   * Returns shell text that starts the package manager in the background. It installs packages and holds the lock until
   * `/run/slow-waits` is deleted. The text waits until the package manager holds the lock.
   */
  holdLock(...names: string[]): string {
    const { install, runsSlow } = this.manager;
    return `
      touch /run/slow-waits
      rm -f /run/installed
      setsid sh -c '${install} slow ${names.join(' ')}; touch /run/installed' > /dev/null 2>&1 < /dev/null &
      until ${runsSlow}; do
        if test -e /run/installed; then echo 'slow is not installed' >&2; exit 1; fi
        sleep 0.05
      done`;
  }

  /** Shell text that runs the package manager. If another one holds the lock, it lets that one finish and waits for it. */
  get meetLock(): string {
    const { program, lockedText } = this.manager;
    return `
      /usr/bin/${program} "$@" > /run/said 2>&1
      code=$?
      cat /run/said
      if grep -q '${lockedText}' /run/said; then
        echo met >> /run/locks-met
        rm -f /run/slow-waits
        until test -e /run/installed; do sleep 0.05; done
      fi
      exit $code`;
  }

  /** Returns how often the replaced program encountered the lock since the last call. */
  async locksMet(): Promise<number> {
    return Number(await this.machine.sh('wc -l < /run/locks-met; rm /run/locks-met'));
  }
}

/** Returns the status of each resource by its identity. */
export const ends = ({ results }: Reported): Record<string, string> =>
  Object.fromEntries(results.map(({ identity, status }) => [identity, status]));

export const messageOf = ({ results }: Reported, name: string): string | null | undefined =>
  results.find(({ identity }) => identity === name)?.message;
