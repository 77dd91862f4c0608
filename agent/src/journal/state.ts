import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import type { Json } from '../resources/provider/provider.ts';

/**
 * The state of the journal in memory. Only `reduce` changes it, so that replaying the journal gives the same state.
 */

export type FinishedReport = Extract<Report, { type: 'finished' }>;

export interface OperationRecord {
  message: OperationMessage;
  state: 'accepted' | 'running' | 'finished';
  /** Whether the acceptance is in the spool or already reported. */
  acceptedReported: boolean;
  cancelled: boolean;
  /** Unix seconds; null before it began. */
  startedAt: number | null;
  /** Keys to remove, in order, fixed at its start. */
  removals: string[];
  /** By position: the observed state of resources that are about to change. */
  intents: Map<number, Intent>;
  /** The resource in progress that is not recheckable. */
  step: { position: number; process: ProcessIdentity | null; before: Json | null } | null;
  /** Recorded original states of resources that are about to get a result, by key. */
  befores: Map<string, Json>;
  /** For an apply: results by position, without the parts that only people need. */
  results: ResourceResult[];
  /** For an apply: the highest ordinal among its resources so far; absent before the first. */
  lastOrdinal?: number;
  /** Created parent directories. */
  freshDirectories: Set<string>;
  finished: FinishedReport | null;
}

export interface Intent {
  seen: Json;
  before: Json | null;
}

/** A resource that an apply manages. */
export interface ManagedRecord {
  /** As last declared, whether or not it succeeded. */
  resource: ResolvedResource;
  /** As last applied with success. */
  succeeded: ResolvedResource | null;
  /** The provider's record of the original state; null: it was as declared before it was managed. */
  before: Json | null;
  /** Increases in the order of application. Removals run from the highest down. */
  ordinal: number;
}

export interface SpooledReports {
  seq: number;
  reports: Report[];
  bytes: number;
}

export interface JournalState {
  operations: Map<string, OperationRecord>;
  /** Operations whose end is acknowledged, oldest first. Answers a late second delivery. */
  past: Map<string, FinishedReport>;
  managed: Map<string, ManagedRecord>;
  /** Parent directories that the agent created for declared resources. */
  ourDirectories: Set<string>;
  /** Triggers that remain due after their operation: ids of the changed resources by key of the triggered one. */
  pendingTriggers: Map<string, string[]>;
  /** The desired set of the last successful apply. */
  snapshot: { operationId: string; resources: ResolvedResource[] } | null;
  spool: Map<number, SpooledReports>;
  spoolBytes: number;
  lastSeq: number;
  applies: number;
}

export type JournalEvent =
  | { t: 'accepted'; message: OperationMessage }
  | { t: 'cancelled'; id: string }
  | { t: 'began'; id: string; at: number; removals: string[] }
  | { t: 'intents'; id: string; entries: ({ position: number } & Intent)[] }
  | { t: 'step'; id: string; position: number; process: ProcessIdentity | null; before: Json | null }
  | { t: 'before'; id: string; key: string; before: Json }
  | { t: 'directories'; id: string | null; made: string[]; gone: string[] }
  | { t: 'report'; seq: number; reports: Report[] }
  | { t: 'ended'; id: string; finished: FinishedReport; pending: [string, string[]][]; snapshot: boolean }
  | { t: 'acknowledged'; seq: number }
  | { t: 'settled'; ids: string[] }
  | { t: 'dropped'; seqs: number[] }
  | { t: 'renumbered'; above: number };

export const emptyState = (): JournalState => ({
  operations: new Map(),
  past: new Map(),
  managed: new Map(),
  ourDirectories: new Set(),
  pendingTriggers: new Map(),
  snapshot: null,
  spool: new Map(),
  spoolBytes: 0,
  lastSeq: 0,
  applies: 0,
});

const maxPast = 1024;
const ordinalsPerApply = 2 ** 20;

/** Applies one event. Never fails: an event about an unknown object changes nothing. */
export function reduce(state: JournalState, event: JournalEvent): void {
  switch (event.t) {
    case 'accepted':
      state.operations.set(event.message.operation_id, {
        message: event.message,
        state: 'accepted',
        acceptedReported: false,
        cancelled: false,
        startedAt: null,
        removals: [],
        intents: new Map(),
        step: null,
        befores: new Map(),
        results: [],
        freshDirectories: new Set(),
        finished: null,
      });
      return;
    case 'cancelled': {
      const operation = state.operations.get(event.id);
      if (operation !== undefined) operation.cancelled = true;
      return;
    }
    case 'began': {
      const operation = state.operations.get(event.id);
      if (operation === undefined) return;
      operation.state = 'running';
      operation.startedAt = event.at;
      operation.removals = event.removals;
      if (operation.message.kind === 'apply') state.applies++;
      return;
    }
    case 'intents': {
      const operation = state.operations.get(event.id);
      for (const { position, seen, before } of event.entries) operation?.intents.set(position, { seen, before });
      return;
    }
    case 'step': {
      const operation = state.operations.get(event.id);
      if (operation !== undefined) {
        const { position, process, before } = event;
        operation.step = { position, process, before };
      }
      return;
    }
    case 'before':
      state.operations.get(event.id)?.befores.set(event.key, event.before);
      return;
    case 'directories':
      for (const path of event.made) {
        const managed = state.managed.get(`path:${path}`)?.resource;
        if (managed === undefined || !isDirectory(managed)) state.ourDirectories.add(path);
        if (event.id !== null) state.operations.get(event.id)?.freshDirectories.add(path);
      }
      for (const path of event.gone) state.ourDirectories.delete(path);
      return;
    case 'report': {
      const bytes = Buffer.byteLength(JSON.stringify(event.reports));
      state.spool.set(event.seq, { seq: event.seq, reports: event.reports, bytes });
      state.spoolBytes += bytes;
      state.lastSeq = Math.max(state.lastSeq, event.seq);
      for (const report of event.reports) {
        const operation = state.operations.get(report.operation_id);
        if (operation === undefined) continue;
        if (report.type === 'accepted') operation.acceptedReported = true;
        if (report.type === 'results' && operation.message.kind === 'apply' && operation.state === 'running')
          report.results.forEach((result, i) => {
            recordResult(state, operation, report.position + i, result);
          });
      }
      return;
    }
    case 'ended':
      recordEnd(state, event);
      return;
    case 'acknowledged':
      for (const entry of state.spool.values()) {
        if (entry.seq > event.seq) break;
        drop(state, entry);
        for (const report of entry.reports) if (report.type === 'finished') settle(state, report.operation_id);
      }
      return;
    case 'settled':
      for (const id of event.ids) settle(state, id);
      return;
    case 'dropped':
      for (const seq of event.seqs) {
        const entry = state.spool.get(seq);
        if (entry !== undefined) drop(state, entry);
      }
      return;
    case 'renumbered': {
      const entries = [...state.spool.values()];
      state.spool.clear();
      state.lastSeq = event.above;
      for (const entry of entries) {
        const seq = ++state.lastSeq;
        state.spool.set(seq, { ...entry, seq });
      }
    }
  }
}

function recordResult(state: JournalState, operation: OperationRecord, position: number, result: ResourceResult): void {
  if (position !== operation.results.length) return;
  operation.results.push({ ...result, changes: [], diff: null, message: null });
  operation.intents.delete(position);
  if (operation.step?.position === position) operation.step = null;
  const { resources } = operation.message;
  const resource = resources[position];
  const isOk = result.status === 'unchanged' || result.status === 'changed';
  if (resource === undefined) {
    const key = operation.removals[position - resources.length];
    if (!isOk || key === undefined) return;
    const removed = state.managed.get(key)?.resource;
    state.managed.delete(key);
    // The directory is removed or restored.
    if (removed?.type === 'directory-unix' && result.action === 'remove') state.ourDirectories.delete(removed.identity);
    return;
  }
  // What a killed agent changed of it is adopted at the end.
  if (result.status === 'skipped') return;
  const { key } = resource;
  const recorded = state.managed.get(key);
  const before = operation.befores.get(key);
  operation.befores.delete(key);
  // A resource that failed without a change is not managed.
  if (!isOk && before === undefined && recorded === undefined) return;
  if (!isOk && recorded !== undefined && recorded.resource.type !== resource.type) return;
  state.managed.delete(key);
  state.managed.set(key, {
    resource,
    succeeded: isOk ? resource : (recorded?.succeeded ?? null),
    before: before ?? recorded?.before ?? null,
    ordinal: ordinalFor(state, operation, position, recorded),
  });
  if (isDirectory(resource)) state.ourDirectories.delete(resource.identity);
}

/** Whether a resource declares a directory, which then does not count as a created parent directory. */
export const isDirectory = ({ type, body }: ResolvedResource): boolean =>
  type === 'directory-unix' && !('ensure' in body && body.ensure === 'absent');

/**
 * A resource keeps its ordinal while it fits the order of the set, so that resources that are not in this set, or that
 * failed before, keep their position relative to their neighbors.
 */
function ordinalFor(
  state: JournalState,
  operation: OperationRecord,
  position: number,
  recorded: ManagedRecord | undefined,
): number {
  const keeps = recorded !== undefined && recorded.ordinal > (operation.lastOrdinal ?? -1);
  operation.lastOrdinal = keeps ? recorded.ordinal : state.applies * ordinalsPerApply + position;
  return operation.lastOrdinal;
}

function recordEnd(state: JournalState, event: Extract<JournalEvent, { t: 'ended' }>): void {
  const operation = state.operations.get(event.id);
  if (operation === undefined) return;
  if (event.snapshot) {
    const { resources, keep_modules } = operation.message;
    const desired = new Set(resources.map(({ key }) => key));
    // What a condition kept from being applied is as it was applied before, if it ever was.
    const applied = resources.flatMap((resource, position) =>
      operation.results[position]?.status === 'skipped'
        ? (state.managed.get(resource.key)?.succeeded ?? [])
        : [resource],
    );
    const kept = [...state.managed.values()].filter(
      ({ resource, succeeded }) =>
        succeeded !== null && !desired.has(resource.key) && keep_modules.includes(resource.module),
    );
    state.snapshot = {
      operationId: event.id,
      resources: [...applied, ...kept.map(({ succeeded }) => succeeded as ResolvedResource)],
    };
  }
  if (operation.message.kind === 'apply') {
    adopt(state, operation);
    state.pendingTriggers = new Map(event.pending);
  }
  operation.state = 'finished';
  operation.finished = event.finished;
  // The records above hold the resources that are still needed.
  operation.message = { ...operation.message, resources: [] };
  operation.results = [];
  operation.intents.clear();
  operation.befores.clear();
  operation.freshDirectories.clear();
  operation.step = null;
}

/** Manages resources that were changed without a result, because the operation was abandoned. */
function adopt(state: JournalState, operation: OperationRecord): void {
  operation.message.resources.forEach((resource, position) => {
    const before = operation.befores.get(resource.key);
    const recorded = state.managed.get(resource.key);
    if (before === undefined || (recorded !== undefined && recorded.resource.type !== resource.type)) return;
    state.managed.delete(resource.key);
    state.managed.set(resource.key, {
      resource,
      succeeded: recorded?.succeeded ?? null,
      before,
      ordinal: recorded?.ordinal ?? state.applies * ordinalsPerApply + position,
    });
    if (isDirectory(resource)) state.ourDirectories.delete(resource.identity);
  });
}

function drop(state: JournalState, entry: SpooledReports): void {
  state.spool.delete(entry.seq);
  state.spoolBytes -= entry.bytes;
}

function settle(state: JournalState, id: string): void {
  const operation = state.operations.get(id);
  if (operation === undefined) return;
  // The engine ends an unfinished operation first; its end is recorded before it is settled.
  if (operation.finished === null) return;
  state.operations.delete(id);
  state.past.set(id, operation.finished);
  for (const oldest of state.past.keys()) {
    if (state.past.size <= maxPast) break;
    state.past.delete(oldest);
  }
}
