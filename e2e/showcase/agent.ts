import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ResourceResult, type Sample, stalePlanError, summarise } from '@muster/protocol';
import type { OperationMessage } from '@muster/protocol/wire';
import { type AgentKey, dialAsAgent, newAgentKey, type TestAgent } from '../../orchestrator/test/test-agent.ts';
import { SimulatedMachine } from './machine.ts';

const samplesOfMessage = 48;
/** Number of results in a report. Small, so that every report fits into the flow-control window. */
const resultsOfReport = 2;

export interface Description {
  hostname: string;
  attributes: Record<string, string>;
  version?: string;
}

/** An agent with a simulated machine and a real link. */
export class ShowcaseAgent {
  readonly key: AgentKey;
  readonly machine = new SimulatedMachine();
  readonly description: Description;
  /** Milliseconds that the agent needs for each resource. */
  delayMs = 0;
  readonly #cancelled = new Set<string>();
  #link: TestAgent | null = null;
  #seq = 0;
  #sending: Promise<void> = Promise.resolve();

  private constructor(key: AgentKey, description: Description) {
    this.key = key;
    this.description = description;
  }

  static async create(description: Description): Promise<ShowcaseAgent> {
    return new ShowcaseAgent(await newAgentKey(), description);
  }

  get nodeId(): string {
    return this.key.nodeId;
  }

  /** Connects, and then executes operations in the background until the link closes. */
  async connect(port: number, token: string | null): Promise<void> {
    const link = await dialAsAgent(port, this.key);
    const { hostname, attributes, version = '0.1.0' } = this.description;
    await link.join({ hostname, attributes, token, agent_version: version });
    this.#link = link;
    this.#work(link).catch(() => {});
    this.#cancels(link).catch(() => {});
  }

  disconnect(): void {
    this.#link?.end();
    this.#link = null;
  }

  /** Sends samples. Resolves when the orchestrator has stored all of them. */
  async measured(samples: readonly Sample[]): Promise<void> {
    for (let at = 0; at < samples.length; at += samplesOfMessage) {
      this.#joined.send({ type: 'metrics', samples: samples.slice(at, at + samplesOfMessage) });
      await this.#joined.next('metrics_stored');
    }
  }

  /** Simulates and reports a manual change to an applied resource. */
  tamper(identity: string, change: Record<string, unknown>): void {
    const key = this.machine.tamper(identity, change);
    if (key === null) throw new Error(`${identity} was not applied to ${this.description.hostname}`);
    this.#joined.send({ type: 'drift_hint', keys: [key] });
  }

  send(message: object): void {
    this.#joined.send(message);
  }

  get #joined(): TestAgent {
    if (this.#link === null) throw new Error(`${this.description.hostname} is offline`);
    return this.#link;
  }

  async #cancels(link: TestAgent): Promise<void> {
    for (;;) this.#cancelled.add((await link.next('cancel')).operation_id);
  }

  async #work(link: TestAgent): Promise<void> {
    for (;;) await this.#execute(link, await link.next('operation'));
  }

  async #execute(link: TestAgent, operation: OperationMessage): Promise<void> {
    const { operation_id } = operation;
    const started_at = Math.floor(Date.now() / 1000);
    await this.#report(link, [{ type: 'accepted', operation_id }]);
    const digest = operation.kind === 'drift' ? undefined : this.#planDigest(operation);
    const isPlanStale = operation.plan_digest !== undefined && operation.plan_digest !== digest;
    const { results, failed } = isPlanStale
      ? {
          results: [],
          failed: stalePlanError('the machine has changed since the plan; nothing was applied, plan again'),
        }
      : this.machine.execute(operation);
    let position = 0;
    while (position < results.length && !this.#cancelled.has(operation_id)) {
      const some = results.slice(position, position + resultsOfReport);
      if (this.delayMs > 0) await sleep(this.delayMs * some.length);
      await this.#report(link, [
        ...this.#outputs(operation_id, some),
        { type: 'results', operation_id, position, results: some },
      ]);
      position += some.length;
    }
    const done = results.slice(0, position);
    const cancelled = position < results.length;
    const finished_at = Math.floor(Date.now() / 1000);
    await this.#report(link, [
      {
        type: 'finished',
        operation_id,
        status: cancelled ? 'cancelled' : failed === null ? 'succeeded' : 'failed',
        summary: summarise(done),
        error: failed,
        started_at,
        finished_at,
        ...(operation.kind === 'plan' ? { plan_digest: digest } : {}),
      },
    ]);
  }

  /** Returns a digest of the changes that an apply would make now. */
  #planDigest(operation: OperationMessage): string {
    const { results } = this.machine.execute({ ...operation, kind: 'plan' });
    return createHash('sha256').update(JSON.stringify(results)).digest('hex');
  }

  #outputs(operation_id: string, results: readonly ResourceResult[]): object[] {
    return results
      .filter(({ action, status }) => action === 'run' && (status === 'changed' || status === 'failed'))
      .map(({ module, identity, status }) => ({
        type: 'output',
        operation_id,
        resource: `${module}/${identity}`,
        stdout: `checking ${identity}\n12 files read, 3 written\n\u001b[32mdone\u001b[0m in 0.4 s\n`,
        stderr: status === 'failed' ? 'sh: 1: exit status 1\n' : '',
        exit_code: status === 'failed' ? 1 : 0,
        truncated: false,
      }));
  }

  /** Sends a report after the previous report has been acknowledged. */
  #report(link: TestAgent, reports: object[]): Promise<void> {
    this.#sending = this.#sending.then(async () => {
      const seq = ++this.#seq;
      link.send({ type: 'report', seq, reports });
      while ((await link.next('ack')).seq < seq);
    });
    return this.#sending;
  }
}
