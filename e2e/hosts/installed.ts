import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildPackages } from '../../packaging/deb/packages.ts';
import { describeBuild, executable } from '../../packaging/executable.ts';
import { root as repository } from '../../tools/cli.ts';
import { eventually } from '../eventually.ts';
import { derivedRoot } from './derived-root.ts';
import type { Machine } from './machine.ts';
import { TestHosts } from './test-hosts.ts';

/**
 * Test hosts with nothing of Muster but its packages, as somebody who installs it has them: no Node, no repository. What
 * is typed on them is what the documentation says.
 */

/** Paths of the three packages. */
export interface Packages {
  muster: string;
  agent: string;
  orchestrator: string;
}

/** A root with curl: what a machine has that the enrolment line is pasted on. */
export const curlRoot = () => derivedRoot({ name: 'debian-curl', packages: ['curl', 'wget'] });

/** Machines that have curl. Used as `TestHosts.open`. */
export const openHosts = async (): Promise<TestHosts> => TestHosts.open({ base: await curlRoot() });

/**
 * The packages of this state of the sources, built when they are not there yet.
 * @param version theirs; another one than the program's for the sake of upgrades
 */
export async function packages(version?: string): Promise<Packages> {
  const about = describeBuild({});
  const program = await executable(about);
  const wanted = version ?? about.version;
  const folder = join(repository, '.cache', 'packages', `${basename(program)}-${wanted}`);
  const paths: Packages = {
    muster: join(folder, `muster_${wanted}_amd64.deb`),
    agent: join(folder, `muster-agent_${wanted}_all.deb`),
    orchestrator: join(folder, `muster-orchestrator_${wanted}_amd64.deb`),
  };
  if (existsSync(folder)) return paths;
  const building = `${folder}.${process.pid}`;
  mkdirSync(building, { recursive: true });
  const epoch = Date.parse(about.date) / 1000;
  const wish = { executable: program, version: wanted, architecture: 'amd64', epoch, compression: 'quick' as const };
  buildPackages({ ...wish, out: building });
  try {
    renameSync(building, folder);
  } catch {
    // Another test file was faster.
    rmSync(building, { recursive: true, force: true });
  }
  return paths;
}

/** Puts packages on a machine's disk and installs them, as a person with the files does. */
export async function dpkgInstall(machine: Machine, paths: readonly string[]): Promise<string> {
  const names = paths.map((path) => basename(path));
  for (const path of paths) copyFileSync(path, join(machine.rootPath, 'root', basename(path)));
  return await machine.sh(`cd /root; dpkg -i ${names.join(' ')}; rm ${names.join(' ')}`);
}

/** An orchestrator that was installed, with root of its machine as the first admin. */
export class InstalledOrchestrator {
  readonly machine: Machine;

  private constructor(machine: Machine) {
    this.machine = machine;
  }

  /** Starts a machine, installs the packages on it, and makes its root the first admin, signed in. */
  static async start(hosts: TestHosts, name: string, built?: Packages): Promise<InstalledOrchestrator> {
    const [{ muster, orchestrator }, machine] = await Promise.all([
      built ?? packages(),
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

  /** What a `muster` verb prints with --json. */
  async json<T>(...words: string[]): Promise<T> {
    return JSON.parse(await this.machine.exec('muster', ...words, '--json')) as T;
  }

  /** The line that `muster agents enroll` prints. */
  async enrolmentLine(...options: string[]): Promise<string> {
    return (await this.machine.exec('muster', 'agents', 'enroll', ...options)).trim();
  }

  /** Enrols a machine by pasting the line into a shell of it. @returns what was shown there */
  async enrol(machine: Machine, ...options: string[]): Promise<string> {
    const line = await this.enrolmentLine('--name', machine.name, ...options);
    return await machine.exec('sh', '-c', `${line} 2>&1`);
  }

  /** Waits until an agent is connected. */
  async connected(name: string): Promise<{ node_id: string; agent_version: string }> {
    return await eventually(`${name} is connected`, async () => {
      const agents = await this.json<{ name: string; connected: boolean; node_id: string; agent_version: string }[]>(
        'agents',
        'list',
      );
      return agents.find((agent) => agent.name === name && agent.connected) ?? null;
    });
  }
}
