import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { baseRoot } from './base-root.ts';
import { raiseKernelLimits } from './kernel-limits.ts';
import { machineName, removeLeftOvers } from './leftovers.ts';
import { Machine } from './machine.ts';
import { Bridge } from './network.ts';

export interface MachineOptions {
  /** Contents of files to write into the machine's root before the first boot, by path. */
  files?: Readonly<Record<string, string>>;
  /** Whether the machine mounts this repository. Default: true. */
  repository?: boolean;
}

/** Directories for test host data: in memory and on disk. */
const disks = ['/dev/shm', '/var/tmp'];
/** Minimum free bytes for keeping test hosts in memory. */
const minFreeMemory = 2 * 1024 ** 3;

/**
 * Real machines for tests, on their own network: Debian containers with systemd as their first process. Requires that
 * `noHosts()` returns null.
 */
export class TestHosts {
  readonly bridge: Bridge;
  /** The Debian root from which every machine starts. */
  readonly base: string;
  readonly #disk: string;
  readonly #machines: Machine[] = [];

  private constructor(base: string, inMemory: boolean) {
    this.base = base;
    const [memory = '', disk = ''] = disks;
    this.#disk = inMemory && freeBytes(memory) > minFreeMemory ? memory : disk;
    this.bridge = new Bridge();
  }

  /**
   * Removes leftovers of killed test runs, builds the root if it does not exist, and creates the network.
   * @param options `base` is the root; `inMemory: false` puts the machines on disk, for measurements
   */
  static async open({ base, inMemory = true }: { base?: string; inMemory?: boolean } = {}): Promise<TestHosts> {
    await removeLeftOvers(disks);
    raiseKernelLimits();
    return new TestHosts(base ?? (await baseRoot()), inMemory);
  }

  /** Creates a machine that is off. */
  machine(name: string, { files = {}, repository = true }: MachineOptions = {}): Machine {
    const folder = join(this.#disk, machineName(name));
    const machine = new Machine({ name, base: this.base, folder, bridge: this.bridge, files, repository });
    this.#machines.push(machine);
    return machine;
  }

  async start(name: string, options: MachineOptions = {}): Promise<Machine> {
    const machine = this.machine(name, options);
    await machine.start();
    return machine;
  }

  /** Removes all machines, running or not, and the network. */
  async end(): Promise<void> {
    const ends = await Promise.allSettled(this.#machines.map((machine) => machine.end()));
    this.#machines.length = 0;
    this.bridge.end();
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Returns the last output of every machine, for printing after a failed test. */
  report(): string {
    return this.#machines.map((machine) => machine.report()).join('\n');
  }
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
