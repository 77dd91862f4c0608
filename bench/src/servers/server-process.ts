import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ServerAddress {
  port: number;
  /** The server's public key in hexadecimal. */
  orchestratorKey: string;
}

/** Clock ticks per second in /proc (USER_HZ). */
const ticksPerSecond = 100;

export interface Usage {
  /** Resident memory in bytes. */
  rss: number;
  /** User and system CPU time of all threads in seconds. */
  cpuSecs: number;
}

/**
 * Flags for servers whose memory is measured. Under load, V8 grows the young generation by up to 100 MB at random
 * times, independent of the number of agents. A small maximum prevents this growth from hiding the cost of an agent.
 */
export const serverFlags = ['--expose-gc', '--max-semi-space-size=8'];

/** Returns a process's memory and CPU time, from /proc. */
export function usageOf(pid: number): Usage {
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  return { rss: rssKb * 1024, cpuSecs: cpuSecsOf(pid).own };
}

/** Returns the CPU time of a process, and that of its children that have ended, in seconds. */
function cpuSecsOf(pid: number): { own: number; ended: number } {
  // Splits after the second field, the program name in parentheses, because the name may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
  const secs = (at: number) => (Number(fields[at]) + Number(fields[at + 1])) / ticksPerSecond;
  return { own: secs(11), ended: secs(13) };
}

/** Returns the CPU time of a server with a process for each connection, such as PostgreSQL, in seconds. */
export function cpuSecsWithChildren(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  const { own, ended } = cpuSecsOf(pid);
  return children.reduce(
    (sum, child) => sum + (existsSync(`/proc/${child}/stat`) ? cpuSecsOf(child).own : 0),
    own + ended,
  );
}

/**
 * Returns the memory and CPU time of a nearly idle process. Sums the CPU time of its threads, which has nanosecond
 * resolution. `pss` is the memory in bytes with a proportional share of shared pages.
 */
export function preciseUsageOf(pid: number): Usage & { pss: number } {
  const pssKb = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))![1]);
  const ns = readdirSync(`/proc/${pid}/task`).reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
  return { rss: usageOf(pid).rss, pss: pssKb * 1024, cpuSecs: ns / 1e9 };
}

export type ServerOrder = { type: 'collect' } | { type: 'fan_out'; text: string };

/**
 * Connects a server's process with its parent: sends the address, executes commands, and exits when the parent exits.
 * @param fanOut sends the text to all agents, and resolves when all of them have replied
 */
export function answerParent(address: ServerAddress, fanOut?: (text: string) => Promise<void>): void {
  process.on('message', async (order: ServerOrder) => {
    if (order.type === 'fan_out') await fanOut!(order.text);
    else for (let i = 0; i < 3; i++) globalThis.gc!();
    process.send!({});
  });
  process.on('disconnect', () => process.exit());
  process.send!(address);
}

/** A measured server that runs in a separate process. */
export class ServerProcess {
  readonly address: ServerAddress;
  private readonly child: ChildProcess;

  private constructor(child: ChildProcess, address: ServerAddress) {
    this.child = child;
    this.address = address;
  }

  /**
   * Starts a server.
   * @param module file in this directory that calls `answerParent`
   * @param flags Node.js flags
   */
  static async start(module: string, flags: readonly string[] = serverFlags): Promise<ServerProcess> {
    const child = fork(join(import.meta.dirname, module), [], { execArgv: [...flags] });
    return new ServerProcess(child, await nextMessage<ServerAddress>(child));
  }

  get usage(): Usage {
    return usageOf(this.child.pid!);
  }

  /** Returns the resource usage after garbage collection. */
  async settledUsage(): Promise<Usage> {
    await this.order({ type: 'collect' });
    return this.usage;
  }

  /** Sends a command. Resolves when the server has executed it. */
  async order(order: ServerOrder): Promise<void> {
    const answered = nextMessage(this.child);
    this.child.send(order);
    await answered;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.disconnect();
    await ended;
  }
}

/** Returns the next message from a child. @throws Error if the child exits first */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`${child.spawnfile} exited with code ${code}`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.removeListener('exit', ended);
      resolve(message as T);
    });
  });
}
