import type { OperationStatus } from '@muster/protocol';
import type { Candidate, RunPicture, WaveRules } from './run-waves.ts';

/** Tracks a run in memory, so that an outcome requires no query. A track can be rebuilt from the rows at any time. */

/** Seconds for which an agent with an operation may be disconnected before its slot becomes free. */
const disconnectedSecs = 300;

export type TrackedRows = readonly {
  readonly node_id: string;
  readonly status: string;
  readonly operation_id: string | null;
  /** Agents that wait for their turn; null in runs from earlier releases, in which no agent waited. */
  readonly position: number | null;
}[];

/** The result of an agent's turn. */
export interface Turn {
  readonly node_id: string;
  readonly operation_id: string | null;
  readonly status: OperationStatus;
  readonly error: string | null;
}

const failed = (status: string) => status === 'failed' || status === 'interrupted' || status === 'expired';

export class RunTrack {
  readonly runId: string;
  readonly rules: WaveRules;
  /** Agents that have not had their turn, with their position, in order. */
  readonly #waiting = new Map<string, number>();
  /** Agents with an operation, and whether the operation takes a slot. */
  readonly #inFlight = new Map<string, { operation_id: string; taking: boolean }>();
  /** When agents with an operation disconnected, in Unix seconds. */
  readonly #outOfSight = new Map<string, number>();
  readonly #canaries: ReadonlySet<string>;
  /** Outcomes that were reported before {@link turned} recorded the agents' turns. */
  readonly #early = new Map<string, OperationStatus>();
  #failures = 0;
  #canariesFailed = 0;

  constructor(runId: string, rules: WaveRules, rows: TrackedRows, isConnected: (nodeId: string) => boolean) {
    this.runId = runId;
    this.rules = rules;
    const canaries = new Set<string>();
    for (const { node_id, status, operation_id, position } of rows) {
      const index = position ?? 0;
      if (position !== null && position < rules.canary) canaries.add(node_id);
      if (status === 'waiting') this.#waiting.set(node_id, index);
      else if (status === 'queued' && operation_id !== null)
        this.#inFlight.set(node_id, { operation_id, taking: rules.absent !== 'queue' || isConnected(node_id) });
    }
    this.#canaries = canaries;
    for (const { node_id, status } of rows)
      if (status !== 'waiting' && status !== 'queued') this.#count(node_id, status);
  }

  get done(): boolean {
    return this.#waiting.size === 0 && this.#inFlight.size === 0;
  }

  waitingIds(): string[] {
    return [...this.#waiting.keys()];
  }

  /** Returns an agent's operation; null if it has none. */
  operationOf(nodeId: string): string | null {
    return this.#inFlight.get(nodeId)?.operation_id ?? null;
  }

  /**
   * Returns the state from which the next wave is decided.
   * @param now Unix seconds
   */
  picture(isConnected: (nodeId: string) => boolean, now: number): RunPicture {
    let taken = 0;
    let missing = 0;
    let canariesOpen = 0;
    for (const [nodeId, { taking }] of this.#inFlight) {
      if (this.#canaries.has(nodeId)) canariesOpen++;
      if (!taking) continue;
      if (now - (this.#outOfSight.get(nodeId) ?? now) > disconnectedSecs) missing++;
      else taken++;
    }
    const waiting = this.#waiting;
    return {
      waiting: {
        *[Symbol.iterator](): Generator<Candidate> {
          for (const [node_id, position] of waiting) yield { node_id, position, connected: isConnected(node_id) };
        },
      },
      taken,
      failures: this.#failures + missing,
      canariesOpen,
      canariesFailed: this.#canariesFailed,
    };
  }

  turned(turns: readonly Turn[], isConnected: (nodeId: string) => boolean): void {
    for (const { node_id, operation_id, status } of turns) {
      if (!this.#waiting.delete(node_id)) continue;
      const end = operation_id === null ? status : this.#early.get(operation_id);
      if (operation_id !== null) this.#early.delete(operation_id);
      if (end !== undefined) this.#count(node_id, end);
      else if (operation_id !== null)
        this.#inFlight.set(node_id, { operation_id, taking: this.rules.absent !== 'queue' || isConnected(node_id) });
    }
  }

  /** Records that an operation ended. Repeated calls have no effect. */
  ended(nodeId: string, operationId: string, status: OperationStatus): void {
    if (this.#inFlight.get(nodeId)?.operation_id !== operationId) {
      if (this.#waiting.has(nodeId)) this.#early.set(operationId, status);
      return;
    }
    this.#inFlight.delete(nodeId);
    this.#outOfSight.delete(nodeId);
    this.#count(nodeId, status);
  }

  /**
   * Updates which agents with an operation are connected.
   * @param now Unix seconds
   * @returns agents that have been disconnected for longer than `graceSecs`
   */
  look(isConnected: (nodeId: string) => boolean, now: number, graceSecs: number): string[] {
    const absent: string[] = [];
    for (const nodeId of this.#inFlight.keys()) {
      if (isConnected(nodeId)) {
        this.#outOfSight.delete(nodeId);
        continue;
      }
      const since = this.#outOfSight.get(nodeId) ?? now;
      this.#outOfSight.set(nodeId, since);
      if (now - since > graceSecs) absent.push(nodeId);
    }
    return absent;
  }

  /** Copies from the previous track when agents disconnected, because the rows do not contain these times. */
  inherit(from: RunTrack): void {
    for (const [nodeId, since] of from.#outOfSight) if (this.#inFlight.has(nodeId)) this.#outOfSight.set(nodeId, since);
  }

  #count(nodeId: string, status: string): void {
    if (failed(status)) this.#failures++;
    if (status !== 'succeeded' && this.#canaries.has(nodeId)) this.#canariesFailed++;
  }
}
