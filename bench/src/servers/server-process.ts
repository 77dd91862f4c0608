import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ServerAddress {
  port: number;
  /** Hexadecimal. */
  orchestratorKey: string;
}

/** Clock ticks a second in /proc, equal on every Linux that Node supports. */
const ticksPerSecond = 100;

export interface Usage {
  /** Resident memory in bytes. */
  rss: number;
  /** Seconds of user and system time so far, all threads. */
  cpuSecs: number;
}

/**
 * Flags of every measured server. Under load V8 grows the young generation up to a hundred megabytes, at random moments
 * and independent of the number of agents. A small maximum keeps that from hiding the cost per agent.
 */
export const serverFlags = ['--expose-gc', '--max-semi-space-size=8'];

/** Memory and CPU time of a process, from /proc. */
export function usageOf(pid: number): Usage {
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  // The second field, the name, may contain any character; the fields after its last parenthesis are numbers.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
  return { rss: rssKb * 1024, cpuSecs: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond };
}

/**
 * Memory and CPU time of a nearly idle process: with its share of shared pages (PSS), and the CPU time of its running
 * threads in nanoseconds.
 */
export function preciseUsageOf(pid: number): Usage & { /** Bytes. */ pss: number } {
  const pssKb = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))![1]);
  const ns = readdirSync(`/proc/${pid}/task`).reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
  return { rss: usageOf(pid).rss, pss: pssKb * 1024, cpuSecs: ns / 1e9 };
}

export type ServerOrder = { type: 'collect' } | { type: 'fan_out'; text: string };

/**
 * Runs in a server's process: sends the address, collects garbage on request, and ends with its parent.
 * @param fanOut sends the text to every agent and resolves when each has answered
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

/** A measured server in a separate process. */
export class ServerProcess {
  readonly address: ServerAddress;
  private readonly child: ChildProcess;

  private constructor(child: ChildProcess, address: ServerAddress) {
    this.child = child;
    this.address = address;
  }

  /** @param module file in this folder that calls `answerParent` */
  static async start(module: string): Promise<ServerProcess> {
    const child = fork(join(import.meta.dirname, module), [], { execArgv: serverFlags });
    return new ServerProcess(child, await nextMessage<ServerAddress>(child));
  }

  get usage(): Usage {
    return usageOf(this.child.pid!);
  }

  /** Live memory, after garbage collection. */
  async settledUsage(): Promise<Usage> {
    await this.order({ type: 'collect' });
    return this.usage;
  }

  /** Sends an order. Resolves when the server has executed it. */
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

/** The next message of a child. @throws if the child ends instead */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`${child.spawnfile} ended with code ${code}`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.removeListener('exit', ended);
      resolve(message as T);
    });
  });
}
