import { copyFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { built } from '../../packaging/built.ts';
import type { Packages } from '../../packaging/deb/packages.ts';
import { eventually } from '../eventually.ts';
import { derivedRoot } from './derived-root.ts';
import type { Machine } from './machine.ts';
import { TestHosts } from './test-hosts.ts';

/** Builds a root with curl and wget, which the enrollment line needs. */
export const curlRoot = () => derivedRoot({ name: 'debian-curl', packages: ['curl', 'wget'] });

/**
 * Builds the root for the machines of docs/replicas.md. It contains the servers of all of them; a server runs on a machine
 * only after it was started there.
 */
export const replicasRoot = (): Promise<string> =>
  derivedRoot({
    name: 'replicas',
    packages: ['postgresql', 'haproxy', 'nats-server', 'openssl', 'curl', 'wget'],
    finish:
      'cd "$new/etc/systemd/system/multi-user.target.wants"; rm haproxy.service nats-server.service postgresql.service',
  });

/** Opens test hosts whose machines have curl and wget. */
export const openHosts = async (): Promise<TestHosts> => TestHosts.open({ base: await curlRoot() });

export async function dpkgInstall(machine: Machine, paths: readonly string[]): Promise<string> {
  const names = paths.map((path) => basename(path));
  for (const path of paths) copyFileSync(path, join(machine.rootPath, 'root', basename(path)));
  return await machine.sh(`cd /root; dpkg -i ${names.join(' ')}; rm ${names.join(' ')}`);
}

/**
 * An orchestrator installed from Debian packages, on a machine that has neither Node.js nor the repository. The
 * machine's root user is the first admin.
 */
export class InstalledOrchestrator {
  readonly machine: Machine;

  private constructor(machine: Machine) {
    this.machine = machine;
  }

  /** Starts a machine, installs the packages on it, and signs in its root user as the first admin. */
  static async start(hosts: TestHosts, name: string, packages?: Packages): Promise<InstalledOrchestrator> {
    const [{ muster, orchestrator }, machine] = await Promise.all([
      packages ?? built().then(({ debs }) => debs),
      hosts.start(name, { repository: false }),
    ]);
    await dpkgInstall(machine, [muster, orchestrator]);
    const key = (await machine.exec('muster', 'operator', 'init')).trim();
    const said = await machine.sh(
      `muster orchestrator init --username ada --operator-key ${key} --advertised-host ${machine.address} 2>&1`,
    );
    const [, fingerprint = ''] = /^Fingerprint of its certificate: (\S+)$/m.exec(said) ?? [];
    await machine.exec('muster', 'login', '--url', 'https://127.0.0.1:4748', '--fingerprint', fingerprint);
    return new InstalledOrchestrator(machine);
  }

  /** Runs a `muster` command with --json. @returns its parsed output */
  async json<T>(...words: string[]): Promise<T> {
    return JSON.parse(await this.machine.exec('muster', ...words, '--json')) as T;
  }

  /** Returns the line that `muster agents enroll` prints. */
  async enrolmentLine(...options: string[]): Promise<string> {
    return (await this.machine.exec('muster', 'agents', 'enroll', ...options)).trim();
  }

  /**
   * Enrolls a machine by running the enrollment line in its shell.
   * @returns the output of the line
   */
  async enroll(machine: Machine, ...options: string[]): Promise<string> {
    const line = await this.enrolmentLine('--name', machine.name, ...options);
    return await machine.exec('sh', '-c', `${line} 2>&1`);
  }

  async connected(name: string): Promise<{ node_id: string; agent_version: string }> {
    return await eventually(`the agent ${name} is connected`, async () => {
      const agents = await this.json<{ name: string; connected: boolean; node_id: string; agent_version: string }[]>(
        'agents',
        'list',
      );
      return agents.find((agent) => agent.name === name && agent.connected) ?? null;
    });
  }
}
