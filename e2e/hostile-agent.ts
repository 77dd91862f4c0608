import type { FieldChange, ResourceResult } from '@muster/protocol';
import { limits, type OperationMessage, type Report } from '@muster/protocol/wire';
import { type AgentKey, dialAsAgent, newAgentKey, type TestAgent } from '../orchestrator/test/test-agent.ts';

/** A hostile agent's attacks on the orchestrator, by name. */
export const strategies = {
  'long-names': 'outputs of unknown resources with names of 4 KB',
  'other-positions': 'results at unknown positions',
  'huge-results': 'results of maximum size, sent repeatedly',
  'many-results': 'the maximum number of removals, with names of 4 KB',
  'drift-hints': 'drift hints without a pause, and drift checks with large results',
  flapping: 'drift hints without a pause, and drift checks that alternate between drift and none',
  versions: 'new links without a pause, each with a different version',
} as const;
export type Strategy = keyof typeof strategies;

export interface HostileCounts {
  links: number;
  /** Number of links that the orchestrator closed or refused. */
  ended: number;
  reports: number;
  /** Number of bytes in acknowledged reports. */
  bytes: number;
  /** Number of operations whose outcome was acknowledged. */
  finished: number;
}

const long = (i: number): string => `/${i}/${'n'.repeat(4_000)}`;
/** The text consists of ASCII letters that JSON does not escape, so each character takes one byte. */
const changes: FieldChange[] = Array.from({ length: 64 }, (_, i) => ({
  field: `field-${i}`,
  from: 'f'.repeat(4_096),
  to: 't'.repeat(4_096),
}));

const resultOf = (
  { module, id, type, identity }: Pick<ResourceResult, 'module' | 'id' | 'type' | 'identity'>,
  more: Partial<ResourceResult> = {},
): ResourceResult => ({
  module,
  id,
  type,
  identity,
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 0,
  sensitive: false,
  ...more,
});

const moved = { action: 'update', status: 'would_change' } as const;

/**
 * An agent under an attacker's control. It has a valid key, is approved, and respects the flow control and the schema
 * where this allows it to send more. It reconnects immediately when its link closes.
 */
export class HostileAgent {
  readonly key: AgentKey;
  readonly counts: HostileCounts = { links: 0, ended: 0, reports: 0, bytes: 0, finished: 0 };
  readonly #strategy: Strategy;
  readonly #port: number;
  #token: string | null;
  #stopped = false;
  #link: TestAgent | null = null;
  #seq = 0;
  #drifts = false;
  /** Resources of the latest apply, which drift checks inspect. */
  #applied: OperationMessage['resources'] = [];
  readonly #removals: number;
  /** Received operations without an acknowledged outcome. */
  readonly #open = new Map<string, OperationMessage>();

  private constructor(key: AgentKey, port: number, token: string, strategy: Strategy, removals: number) {
    this.key = key;
    this.#removals = removals;
    this.#port = port;
    this.#token = token;
    this.#strategy = strategy;
  }

  /** @param removals number of removals that `many-results` reports; default: the maximum */
  static async create(
    port: number,
    token: string,
    strategy: Strategy,
    removals: number = limits.maxResources,
  ): Promise<HostileAgent> {
    return new HostileAgent(await newAgentKey(), port, token, strategy, removals);
  }

  /** Runs until it is stopped. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#connect();
      } catch {
        if (!this.#stopped) this.counts.ended++;
      }
      this.#link?.end();
      this.#link = null;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#link?.end();
  }

  async #connect(): Promise<void> {
    const link = await dialAsAgent(this.#port, this.key);
    this.#link = link;
    const welcome = await link.join({
      token: this.#token,
      hostname: this.key.nodeId.slice(0, 8),
      agent_version: this.#strategy === 'versions' ? `0.0.${this.counts.links}` : '1.0.0',
      open_operations: [...this.#open.keys()].slice(0, 64).map((operation_id) => ({ operation_id, state: 'running' })),
    });
    this.counts.links++;
    this.#token = null;
    this.#seq = welcome.acknowledged;
    for (const id of welcome.settled_operations) this.#open.delete(id);
    if (this.#strategy === 'versions') {
      link.end();
      return;
    }
    const hinting = this.#strategy === 'drift-hints' || this.#strategy === 'flapping' ? this.#hint(link) : null;
    for (const operation of this.#open.values()) await this.#answer(link, operation);
    for (;;) {
      const operation = await link.next('operation');
      this.#open.set(operation.operation_id, operation);
      await this.#answer(link, operation);
      if (this.#stopped) break;
    }
    await hinting;
  }

  /** Sends drift hints as fast as the link's rate limit allows. */
  async #hint(link: TestAgent): Promise<void> {
    while (!this.#stopped && link.ws.readyState === link.ws.OPEN) {
      if (this.#applied.length > 0) link.send({ type: 'drift_hint', keys: [long(0)] });
      await new Promise((resolve) => setTimeout(resolve, 1000 / limits.agentMessagesPerSecond + 2));
    }
  }

  async #answer(link: TestAgent, operation: OperationMessage): Promise<void> {
    const { operation_id, kind, resources } = operation;
    await this.#report(link, [{ type: 'accepted', operation_id }]);
    if (kind === 'drift') return this.#answerDrift(link, operation_id);
    switch (this.#strategy) {
      case 'long-names':
        for (let i = 0; ; i++)
          await this.#report(link, [
            { type: 'output', operation_id, resource: long(i), stdout: '', stderr: '', exit_code: 0, truncated: false },
          ]);
      case 'other-positions':
        for (let position = resources.length + limits.maxResources; ; position++)
          await this.#report(link, [
            {
              type: 'results',
              operation_id,
              position,
              results: [resultOf({ ...resources[0]!, identity: long(position) })],
            },
          ]);
      case 'huge-results':
        for (let turn = 0; turn < 2; turn++)
          for (const [position, resource] of resources.entries())
            await this.#report(link, [
              {
                type: 'results',
                operation_id,
                position,
                results: [resultOf(resource, { changes, diff: 'd'.repeat(65_000), message: 'm'.repeat(8_000) })],
              },
            ]);
        break;
      case 'many-results':
        for (let at = 0; at < this.#removals; at += 250)
          await this.#report(link, [
            {
              type: 'results',
              operation_id,
              position: resources.length + at,
              results: Array.from({ length: 250 }, (_, i) =>
                resultOf(
                  { module: 'gone', id: null, type: 'file-unix', identity: long(at + i) },
                  { action: 'remove', status: 'failed', message: 'm'.repeat(500) },
                ),
              ),
            },
          ]);
    }
    const results = resources.map((resource) => resultOf(resource));
    for (let at = 0; at < results.length; at += 16)
      await this.#report(link, [{ type: 'results', operation_id, position: at, results: results.slice(at, at + 16) }]);
    await this.#finish(link, operation_id, resources.length);
    this.#applied = resources;
  }

  async #answerDrift(link: TestAgent, operation_id: string): Promise<void> {
    this.#drifts = !this.#drifts;
    const found = this.#strategy === 'flapping' && !this.#drifts ? [] : this.#applied;
    const details =
      this.#strategy === 'flapping' ? moved : { ...moved, changes: changes.slice(0, 8), diff: 'd'.repeat(10_000) };
    for (const [position, resource] of found.entries())
      await this.#report(link, [{ type: 'results', operation_id, position, results: [resultOf(resource, details)] }]);
    await this.#finish(link, operation_id, found.length);
  }

  async #finish(link: TestAgent, operation_id: string, total: number): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const summary = { total, unchanged: total, changed: 0, removed: 0, failed: 0, skipped: 0 };
    await this.#report(link, [
      { type: 'finished', operation_id, status: 'succeeded', summary, error: null, started_at: now, finished_at: now },
    ]);
    this.#open.delete(operation_id);
    this.counts.finished++;
  }

  /** Sends a report as fast as flow control allows. Resolves when the report is acknowledged. */
  async #report(link: TestAgent, reports: Report[]): Promise<void> {
    const seq = ++this.#seq;
    const text = JSON.stringify(reports);
    if (text.length <= limits.reportPartLength) link.send({ type: 'report', seq, reports });
    else {
      const parts = Math.ceil(text.length / partLength);
      for (let part = 0; part < parts; part++) {
        const piece = text.slice(part * partLength, (part + 1) * partLength);
        link.send({ type: 'report_part', seq, part, parts, text: piece });
        // The acknowledgment of the report is also the credit for its last chunk.
        if (part < parts - 1) await link.next('credit');
      }
    }
    for (let ack = await link.next('ack'); ack.seq < seq; ) ack = await link.next('ack');
    this.counts.reports++;
    this.counts.bytes += text.length;
  }
}

/** Number of characters. Well below the frame limit, because JSON escapes the quotes in the text. */
const partLength = 3_000;
