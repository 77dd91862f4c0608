import type { Sample } from '@muster/protocol';
import type { Hello, OperationMessage, OutputProgress, Report } from '@muster/protocol/wire';
import type { KeyOf } from '../src/domain/agent-link/agent-keys.ts';
import type { Admission, AgentLinks, Standing } from '../src/domain/agent-link/agent-link.ts';
import type { Refusal } from '../src/domain/agent-link/refusal.ts';
import { idOfRawKey } from '../src/identity/ed25519-key.ts';

interface Row {
  standing: Standing;
  acknowledged: number;
  reports: Report[];
  attributes: Record<string, string>;
  queue: OperationMessage[];
  accepted: string | null;
  cancellations: string[];
}

/** An in-memory domain for the gateway, with only the rules that gateway tests need. */
export class MemoryLinks implements AgentLinks {
  readonly rows = new Map<string, Row>();
  readonly calls: string[] = [];
  readonly refusals: { refusal: Refusal; node_id: string | null }[] = [];
  /** The agent ID of each operation, by operation ID. */
  readonly owners = new Map<string, string>();
  newStatus: Standing['status'] = 'approved';
  /** A promise that each commit awaits. */
  gate: Promise<void> = Promise.resolve();
  failing = false;
  /** Contents that operations reference, by operation and hash. */
  readonly contents = new Map<string, ReadonlyMap<string, Uint8Array>>();
  reads = 0;

  async contentsOf(nodeId: string, operationId: string) {
    const contents = this.owners.get(operationId) === nodeId ? this.contents.get(operationId) : undefined;
    return contents === undefined ? null : new Map([...contents].map(([hash, bytes]) => [hash, bytes.length]));
  }

  async readContent(sha256: string, from: number) {
    this.reads++;
    const found = [...this.contents.values()].flatMap((contents) => contents.get(sha256) ?? []);
    return found[0]?.subarray(from, from - (from % 262_144) + 262_144) ?? null;
  }

  row(nodeId: string): Row {
    const row = this.rows.get(nodeId);
    if (!row) throw new Error(`no agent ${nodeId}`);
    return row;
  }

  queue(nodeId: string, operation: OperationMessage): void {
    this.row(nodeId).queue.push(operation);
    this.owners.set(operation.operation_id, nodeId);
  }

  /** Owners by key in hex, for keys other than an owner's first key. The hash of the first key is the owner's ID. */
  readonly keys = new Map<string, KeyOf | { refusal: Refusal; node_id: string }>();

  async keyOf(hello: Hello) {
    const node_id = idOfRawKey(Buffer.from(hello.public_key, 'hex'));
    return this.keys.get(hello.public_key) ?? { node_id, valid_until: null, succession: null };
  }

  async admit(hello: Hello, from: { node_id: string }): Promise<Admission> {
    await this.gate;
    if (this.failing) throw new Error('disk full');
    this.calls.push(`admit ${hello.hostname}`);
    let row = this.rows.get(from.node_id);
    if (!row) {
      const standing: Standing = { status: this.newStatus, name: null, tags: {} };
      row = { standing, acknowledged: 0, reports: [], attributes: {}, queue: [], accepted: null, cancellations: [] };
      this.rows.set(from.node_id, row);
    }
    if (row.standing.status === 'rejected')
      return { admitted: false, refusal: { code: 'rejected', message: 'rejected', retry_after_secs: 600 } };
    row.attributes = hello.attributes;
    return { admitted: true, standing: row.standing, acknowledged: row.acknowledged, settled_operations: [] };
  }

  opened(): void {}

  readonly samples: { node_id: string; samples: readonly Sample[] }[] = [];

  async sampled(nodeId: string, samples: readonly Sample[]): Promise<void> {
    await this.gate;
    if (this.failing) throw new Error('disk full');
    this.samples.push({ node_id: nodeId, samples });
  }

  async attributesChanged(nodeId: string, attributes: Record<string, string>): Promise<void> {
    this.calls.push('attributes');
    this.row(nodeId).attributes = attributes;
  }

  async reported(
    nodeId: string,
    _instanceId: string,
    seq: number,
    reports: readonly Report[],
  ): Promise<Refusal | null> {
    await this.gate;
    if (this.failing) throw new Error('disk full');
    this.calls.push(`reported ${seq} × ${reports.length}`);
    const row = this.row(nodeId);
    for (const report of reports)
      if (this.owners.get(report.operation_id) !== nodeId)
        return {
          code: 'protocol_violation',
          message: `operation ${report.operation_id} is another agent's`,
          retry_after_secs: null,
        };
    if (seq <= row.acknowledged) return null;
    row.acknowledged = seq;
    row.reports.push(...reports);
    for (const report of reports) {
      if (report.type === 'accepted') row.accepted = report.operation_id;
      if (report.type !== 'finished') continue;
      row.queue = row.queue.filter((operation) => operation.operation_id !== report.operation_id);
      row.accepted = null;
    }
    return null;
  }

  async nextOperation(nodeId: string): Promise<{ operation: OperationMessage; more: boolean } | null> {
    this.calls.push('nextOperation');
    const row = this.row(nodeId);
    const [operation, ...behind] = row.accepted === null && row.standing.status === 'approved' ? row.queue : [];
    return operation ? { operation, more: behind.length > 0 } : null;
  }

  async cancellations(nodeId: string): Promise<string[]> {
    return this.row(nodeId).cancellations;
  }

  async agentsWithWork(): Promise<string[]> {
    this.calls.push('agentsWithWork');
    return [...this.rows].filter(([, row]) => row.queue.length + row.cancellations.length > 0).map(([id]) => id);
  }

  async standing(nodeId: string): Promise<Standing | null> {
    return this.rows.get(nodeId)?.standing ?? null;
  }

  readonly shown: OutputProgress[] = [];

  async printed(_nodeId: string, progress: OutputProgress): Promise<void> {
    await this.gate;
    this.shown.push(progress);
  }

  async driftHinted(_nodeId: string, keys: readonly string[]): Promise<void> {
    this.calls.push(`drift ${keys.join()}`);
  }

  async closed(_nodeId: string, reason: string): Promise<void> {
    this.calls.push(`closed: ${reason}`);
  }

  async cloneSeen(): Promise<void> {
    this.calls.push('cloned');
  }

  async refused(refusal: Refusal, from: { node_id: string | null }): Promise<void> {
    this.refusals.push({ refusal, node_id: from.node_id });
  }
}
