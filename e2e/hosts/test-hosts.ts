import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { baseRoot } from './base-root.ts';
import { raiseKernelLimits } from './kernel-limits.ts';
import { machineName, removeLeftOvers } from './leftovers.ts';
import { Machine } from './machine.ts';
import { Bridge } from './network.ts';

export interface MachineOptions {
  /** Files to write into its root before the first boot, by path. */
  files?: Readonly<Record<string, string>>;
  /** False: the machine does not mount this repository. */
  repository?: boolean;
}

/** In memory if there is enough: the data of a test machine is temporary. */
const disks = ['/dev/shm', '/var/tmp'];
const roomInMemory = 2 * 1024 ** 3;

/**
 * Real machines for tests, on their own network: Debian with systemd as its first process, in namespaces of this
 * machine. Needs the requirements of `missing('hosts')`.
 */
export class TestHosts {
  readonly bridge: Bridge;
  /** The Debian root that every machine starts from. */
  readonly base: string;
  readonly #disk: string;
  readonly #machines: Machine[] = [];

  private constructor(base: string, inMemory: boolean) {
    this.base = base;
    const [memory = '', disk = ''] = disks;
    this.#disk = inMemory && roomIn(memory) > roomInMemory ? memory : disk;
    this.bridge = new Bridge();
  }

  /**
   * Builds the root if necessary, removes leftovers of killed test runs, and creates the network.
   * @param options another base root; disks outside memory, for measurements
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

  /** Creates and starts a machine. */
  async start(name: string, options: MachineOptions = {}): Promise<Machine> {
    const machine = this.machine(name, options);
    await machine.start();
    return machine;
  }

  /** Removes everything, in any state. */
  async end(): Promise<void> {
    const ends = await Promise.allSettled(this.#machines.map((machine) => machine.end()));
    this.#machines.length = 0;
    this.bridge.end();
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Last output of every machine, for a failed test. */
  report(): string {
    return this.#machines.map((machine) => machine.report()).join('\n');
  }
}

function roomIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
