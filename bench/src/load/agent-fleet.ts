import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { nextMessage, usageOf } from '../servers/server-process.ts';
import type { WorkerAnswer, WorkerOrder } from './agent-worker.ts';
import type { SimulatedTarget } from './simulated-agent.ts';

/** Simulated agents for each process, because one process may only open a limited number of files. */
const agentsPerWorker = 2_500;
const aFew = 50;

export class AgentFleet {
  private readonly workers: ChildProcess[];
  private readonly count: number;

  constructor(count: number) {
    this.count = count;
    const workers = count < aFew ? 1 : Math.max(2, Math.ceil(count / agentsPerWorker));
    this.workers = Array.from({ length: workers }, () => fork(join(import.meta.dirname, 'agent-worker.ts')));
  }

  /**
   * Connects all agents.
   * @param atOnce  how many dial at the same time
   * @param sampled whether they measure and send samples, as real agents do
   * @returns seconds until the last welcome
   */
  async connect(target: SimulatedTarget, atOnce: number, sampled = false): Promise<number> {
    const began = performance.now();
    const each = Math.ceil(this.count / this.workers.length);
    await Promise.all(
      this.workers.map((worker, i) =>
        order(worker, {
          type: 'connect',
          target,
          first: i * each,
          count: Math.min(each, this.count - i * each),
          atOnce: Math.ceil(atOnce / this.workers.length),
          sampled,
        }),
      ),
    );
    return (performance.now() - began) / 1000;
  }

  /** Seconds of processor time that all agents used. */
  get cpuSecs(): number {
    return this.workers.reduce((sum, worker) => sum + usageOf(worker.pid!).cpuSecs, 0);
  }

  /** Disconnects all agents; they take no samples until they connect again. */
  async leave(): Promise<void> {
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'leave' })));
  }

  /** Connects the disconnected agents again, with the same keys; they measure and send samples as real agents do. */
  async comeBack(atOnce: number): Promise<void> {
    const each = Math.ceil(atOnce / this.workers.length);
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'return', atOnce: each })));
  }

  /** Each agent sends `bytes` bytes of reports and waits for the acknowledgment. */
  async send(bytes: number): Promise<void> {
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'send', bytes })));
  }

  /** The text of the last operation that one of the agents received. */
  async lastOperation(): Promise<string> {
    const answer = await order(this.workers[0]!, { type: 'last_operation' });
    return answer.type === 'done' ? answer.operation! : '';
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.workers.map((worker) => {
        const ended = new Promise((resolve) => worker.once('exit', resolve));
        worker.disconnect();
        return ended;
      }),
    );
  }
}

async function order(worker: ChildProcess, what: WorkerOrder): Promise<WorkerAnswer> {
  const answered = nextMessage<WorkerAnswer>(worker);
  worker.send(what);
  const answer = await answered;
  if (answer.type === 'failed') throw new Error(`a process of simulated agents: ${answer.message}`);
  return answer;
}
