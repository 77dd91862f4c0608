import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { OrchestratorProcess } from '../servers/orchestrator-process.ts';
import { nextMessage, usageOf } from '../servers/server-process.ts';
import type { WorkerAnswer, WorkerOrder } from './agent-worker.ts';
import type { SimulatedTarget } from './simulated-agent.ts';

/** Maximum number of agents per process. A process can open only a limited number of files. */
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
   * @param targets the orchestrators, to which the agents are assigned in turn
   * @param atOnce  maximum number of agents that dial at the same time
   * @param sampled whether the agents send samples
   * @returns seconds until the last agent is connected
   */
  async connect(
    targets: SimulatedTarget | readonly SimulatedTarget[],
    atOnce: number,
    sampled = false,
  ): Promise<number> {
    const began = performance.now();
    const each = Math.ceil(this.count / this.workers.length);
    await Promise.all(
      this.workers.map((worker, i) =>
        order(worker, {
          type: 'connect',
          targets: [targets].flat(),
          first: i * each,
          count: Math.min(each, this.count - i * each),
          atOnce: Math.ceil(atOnce / this.workers.length),
          sampled,
        }),
      ),
    );
    return (performance.now() - began) / 1000;
  }

  /**
   * Connects all agents to an orchestrator with a new enrollment token. Takes the parameters of `connect`, and returns
   * its result.
   */
  async enroll(orchestrator: OrchestratorProcess, atOnce: number, sampled = false): Promise<number> {
    const token = await orchestrator.enrolmentToken(this.count);
    return this.connect({ ...orchestrator.address, token }, atOnce, sampled);
  }

  /** Total CPU time of all agents in seconds. */
  get cpuSecs(): number {
    return this.workers.reduce((sum, worker) => sum + usageOf(worker.pid!).cpuSecs, 0);
  }

  /** Disconnects all agents. They take no samples until they reconnect. */
  async leave(): Promise<void> {
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'leave' })));
  }

  /** Reconnects the disconnected agents with the same keys. They send samples again. */
  async comeBack(atOnce: number): Promise<void> {
    const each = Math.ceil(atOnce / this.workers.length);
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'return', atOnce: each })));
  }

  /** Sends `bytes` bytes of reports from each agent. Resolves when all reports are acknowledged. */
  async send(bytes: number): Promise<void> {
    await Promise.all(this.workers.map((worker) => order(worker, { type: 'send', bytes })));
  }

  /** Returns the JSON text of the last operation that one of the agents received. */
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
  if (answer.type === 'failed') throw new Error(`a process of simulated agents failed: ${answer.message}`);
  return answer;
}
