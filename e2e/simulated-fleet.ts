import { setTimeout as sleep } from 'node:timers/promises';
import type { ResourceResult } from '@muster/protocol';
import { type AgentKey, dialAsAgent, newAgentKey, type TestAgent } from '../orchestrator/test/test-agent.ts';

const unchanged: ResourceResult = {
  module: 'motd',
  id: 'motd',
  type: 'file-unix',
  identity: '/etc/motd',
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 1,
  sensitive: false,
};

export interface FleetWatch {
  /** Called when an agent receives an operation for the first time. */
  onStarted(nodeId: string, operationId: string): void;
  /** Called when an agent reports an operation as finished for the first time. */
  onEnded(nodeId: string, operationId: string): void;
  /** Called when an agent receives an operation again after its result was acknowledged. */
  onRepeated(nodeId: string, operationId: string): void;
  /** Called when an agent is welcomed, and when it loses its link. */
  onLink?(nodeId: string, linked: boolean): void;
  /** Returns how long an agent waits before it connects again, in milliseconds; default: 20. */
  pauseMs?(): number;
  /** Returns the final status of an agent's next operation, and its duration in milliseconds. */
  judge(nodeId: string): { status: 'succeeded' | 'failed'; afterMs: number };
}

/** An agent with an in-memory journal and no machine. A large number of such agents needs few resources. */
export class SimulatedAgent {
  readonly key: AgentKey;
  readonly #port: () => number;
  readonly #watch: FleetWatch;
  readonly #journal = new Map<string, 'running' | 'finished' | 'acknowledged'>();
  #spool: { seq: number; reports: object[] }[] = [];
  #seq = 0;
  #token: string | null;
  #stopped = false;
  #link: TestAgent | null = null;
  readonly #instance = 'ab'.repeat(16);

  constructor(key: AgentKey, token: string, port: () => number, watch: FleetWatch) {
    this.key = key;
    this.#token = token;
    this.#port = port;
    this.#watch = watch;
  }

  /** Stays connected until it is stopped. Reconnects after any failure. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      await this.#connect().catch(() => {});
      this.#link?.end();
      this.#link = null;
      await sleep(this.#watch.pauseMs?.() ?? 20);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#link?.end();
  }

  async #connect(): Promise<void> {
    const link = await dialAsAgent(this.#port(), this.key);
    this.#link = link;
    const welcome = await link.join({
      instance_id: this.#instance,
      token: this.#token,
      hostname: this.key.nodeId.slice(0, 8),
      open_operations: [...this.#journal]
        .filter(([, state]) => state !== 'acknowledged')
        .map(([operation_id, state]) => ({ operation_id, state: state === 'running' ? 'running' : 'finished' })),
    });
    this.#token = null;
    this.#watch.onLink?.(this.key.nodeId, true);
    this.#acknowledge(welcome.acknowledged);
    for (const report of this.#spool) link.send({ type: 'report', ...report });
    try {
      await Promise.all([this.#work(link), this.#acks(link)]);
    } finally {
      this.#watch.onLink?.(this.key.nodeId, false);
    }
  }

  async #acks(link: TestAgent): Promise<void> {
    for (;;) this.#acknowledge((await link.next('ack')).seq);
  }

  #acknowledge(seq: number): void {
    for (const report of this.#spool)
      if (report.seq <= seq)
        for (const entry of report.reports as { type: string; operation_id: string }[])
          if (entry.type === 'finished') this.#journal.set(entry.operation_id, 'acknowledged');
    this.#spool = this.#spool.filter((report) => report.seq > seq);
  }

  async #work(link: TestAgent): Promise<void> {
    for (;;) {
      const { operation_id } = await link.next('operation');
      const known = this.#journal.get(operation_id);
      if (known === 'acknowledged') this.#watch.onRepeated(this.key.nodeId, operation_id);
      if (known !== undefined) continue;
      this.#journal.set(operation_id, 'running');
      this.#watch.onStarted(this.key.nodeId, operation_id);
      this.#report([{ type: 'accepted', operation_id }]);
      void this.#execute(operation_id);
    }
  }

  /** Executes an operation, even while the agent is disconnected. */
  async #execute(operation_id: string): Promise<void> {
    const { status, afterMs } = this.#watch.judge(this.key.nodeId);
    await sleep(afterMs);
    this.#journal.set(operation_id, 'finished');
    const at = Math.floor(Date.now() / 1000);
    const summary = { total: 1, unchanged: 1, changed: 0, removed: 0, failed: 0, skipped: 0 };
    const error = status === 'failed' ? 'simulated failure' : null;
    this.#watch.onEnded(this.key.nodeId, operation_id);
    this.#report([
      { type: 'results', operation_id, position: 0, results: [unchanged] },
      { type: 'finished', operation_id, status, summary, error, started_at: at, finished_at: at },
    ]);
  }

  #report(reports: object[]): void {
    const report = { seq: ++this.#seq, reports };
    this.#spool.push(report);
    this.#link?.send({ type: 'report', ...report });
  }
}

/** Creates agents. @param token returns the enrollment token for the agent with this name */
export async function simulatedFleet(
  count: number,
  token: (name: string) => Promise<string>,
  port: () => number,
  watch: FleetWatch,
): Promise<SimulatedAgent[]> {
  const agents: SimulatedAgent[] = [];
  for (let at = 0; at < count; at++)
    agents.push(new SimulatedAgent(await newAgentKey(), await token(`sim-${at}`), port, watch));
  return agents;
}
