import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, checkDrift, type Operation } from '@muster/protocol/http';
import type { Json } from '@muster/protocol/module';
import { expect } from 'vitest';
import { musterHere } from '../../../cli/test/process.ts';
import { root } from '../../../tools/suite/cli.ts';
import { ended } from '../../eventually.ts';
import type { Orchestrator, Stage } from '../../harness.ts';
import { operatorEnvironment } from '../../person.ts';
import { HostAgent } from '../agent.ts';
import { AptRepository } from '../apt-repository.ts';
import type { Machine } from '../machine.ts';
import { recipesRoot } from '../recipes-root.ts';
import { staysAlways } from '../roles.ts';
import type { RootDifference } from '../root-difference.ts';
import { TestHosts } from '../test-hosts.ts';
import { Downloads } from './downloads.ts';

/** Values of an assignment, by module and parameter. */
export type Values = Record<string, Record<string, Json>>;

interface Parts {
  stage: Stage;
  hosts: TestHosts;
  machine: Machine;
  orchestrator: Orchestrator;
  repository: AptRepository;
  downloads: Downloads;
  agent: HostAgent;
}

/** Shell text that prints the listening ports, the kernel parameters that the sites set, and the failed units. */
const stateText = `
ss --no-header --listening --tcp --numeric | awk '{ print $4 }' | sort
cd /proc/sys/net/ipv4
cat ip_forward tcp_syncookies conf/all/rp_filter conf/*/accept_redirects conf/all/send_redirects conf/all/log_martians
systemctl --failed --no-legend
`;

/** A machine to which a test applies a site of `examples/sites`, with the commands of the site's page. */
export class SiteHost {
  readonly machine: Machine;
  readonly downloads: Downloads;
  readonly #site: string;
  readonly #parts: Parts;
  readonly #before: RootDifference;
  readonly #stateBefore: string;

  private constructor(site: string, parts: Parts, state: string) {
    this.machine = parts.machine;
    this.downloads = parts.downloads;
    this.#site = site;
    this.#parts = parts;
    this.#before = parts.machine.changes();
    this.#stateBefore = state;
  }

  /** Starts a machine with only an agent, and uploads the modules of the site. */
  static async open(stage: Stage, site: string): Promise<SiteHost> {
    const hosts = await TestHosts.open({ base: await recipesRoot() });
    const [machine, orchestrator, repository, downloads] = await Promise.all([
      hosts.start('site'),
      stage.orchestrator(),
      AptRepository.open(hosts, 'recipes'),
      Downloads.open(hosts.bridge.address),
    ]);
    await repository.use(machine);
    await machine.sh('echo 127.0.0.1 localhost site > /etc/hosts');
    const agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address, { tags: { site } });
    const host = new SiteHost(
      site,
      { stage, hosts, machine, orchestrator, repository, downloads, agent },
      await machine.sh(stateText),
    );
    await host.muster('modules', 'upload', ...host.#modules().map((name) => join(host.#folder, name)));
    return host;
  }

  /** Runs the CLI as the first admin. @returns the output */
  async muster(...args: string[]): Promise<string> {
    const { stage, orchestrator } = this.#parts;
    const all = Object.entries(stage.environment(operatorEnvironment(stage, orchestrator)));
    const env = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
    const ran = await musterHere(args, env);
    expect(ran.exit, `muster ${args.join(' ')}\n${ran.stderr}`).toBe(0);
    return ran.stdout;
  }

  /** Stores a secret for the machines of the site. */
  async store(secret: string, value: string): Promise<void> {
    const file = this.#write(secret, value);
    await this.muster('secrets', 'set', secret, '--file', file, '--selector', `site=${this.#site}`);
  }

  /** Assigns all modules of the site to its machines. */
  async assign(values: Values): Promise<void> {
    const named = this.#modules().flatMap((name) => ['-m', name]);
    const file = this.#write('values.json', JSON.stringify(values));
    const selector = `site=${this.#site}`;
    await this.muster('assignments', 'create', this.#site, ...named, '--selector', selector, '--parameters', file);
  }

  /** Changes the values of the assignment. */
  async change(values: Values): Promise<void> {
    const file = this.#write('values.json', JSON.stringify(values));
    await this.muster('assignments', 'update', this.#site, '--parameters', file);
  }

  /**
   * Applies, and waits until the operation has ended, because a busy machine may need longer than the request waits.
   */
  async apply(): Promise<Operation> {
    const { orchestrator } = this.#parts;
    const body = { modules: [] };
    const { operation_id } = await orchestrator.call(applyAgent, { params: this.#params, body });
    return await ended(orchestrator.call, operation_id);
  }

  drift() {
    return this.#parts.orchestrator.call(checkDrift, { params: this.#params });
  }

  /** Removes the assignment, and applies. */
  async remove(): Promise<Operation> {
    await this.muster('assignments', 'remove', this.#site, '--yes');
    return await this.apply();
  }

  /** Starts a program that accepts connections to a port on all addresses. */
  async listen(port: number): Promise<void> {
    const options = `LocalAddr => "0.0.0.0", LocalPort => ${port}, Listen => 5, ReuseAddr => 1`;
    const text = `my $s = IO::Socket::INET->new(${options}) or die; while (my $c = $s->accept) { close $c }`;
    await this.machine.sh(`systemd-run --quiet --unit=listener-${port} perl -MIO::Socket::INET -e '${text}'`);
    await this.machine.sh(`until ss --no-header --listening --tcp --numeric | grep -q ':${port} '; do sleep 0.1; done`);
  }

  /** Returns the state of the running system, now and before the first apply. */
  async states(): Promise<{ now: string; before: string }> {
    return { now: await this.machine.sh(stateText), before: this.#stateBefore };
  }

  /**
   * Returns the paths that differ from the state before the first apply, without the records of accounts and packages.
   */
  traces(): string[] {
    const after = this.machine.changes();
    const paths = [...new Set([...Object.keys(this.#before), ...Object.keys(after)])].sort();
    const isChanged = (path: string) => after[path] !== this.#before[path];
    return paths.filter((path) => isChanged(path) && !staysAlways.some((pattern) => pattern.test(path)));
  }

  /** Returns the logs, for a test that failed. */
  async report(): Promise<string> {
    return `${this.#parts.stage.report()}\n${await this.#parts.agent.log()}`;
  }

  async end(): Promise<void> {
    const { hosts, repository, downloads } = this.#parts;
    await repository.end();
    await downloads.end();
    await hosts.end();
  }

  get #folder(): string {
    return join(root, 'examples/sites', this.#site, 'modules');
  }

  #modules(): string[] {
    return readdirSync(this.#folder);
  }

  get #params() {
    return { node_id: this.#parts.agent.nodeId };
  }

  #write(name: string, content: string): string {
    const file = join(this.#parts.stage.folder('files'), name);
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  }
}

/** Expects that an apply succeeded, and returns the actions that changed something, by `module:id`. */
export function changesOf({ status, error, resources }: Operation): Record<string, string> {
  expect({ status, error }).toEqual({ status: 'succeeded', error: null });
  const changed = resources.filter((resource) => resource.status === 'changed');
  return Object.fromEntries(changed.map(({ module, id, action }) => [`${module}:${id}`, action]));
}
