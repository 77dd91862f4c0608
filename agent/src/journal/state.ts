import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import type { Json } from '../resources/provider/provider.ts';

/**
 * What the journal says, in memory: a value that only `reduce` changes, so that reading the journal again gives the
 * same. Events that belong together are one line.
 */

export type FinishedReport = Extract<Report, { type: 'finished' }>;

export interface OperationRecord {
  message: OperationMessage;
  state: 'accepted' | 'running' | 'finished';
  /** The orchestrator was told, or will be by what is in the spool. */
  acceptedReported: boolean;
  cancelled: boolean;
  /** Unix seconds; null before it began. */
  startedAt: number | null;
  /** Keys to remove, in order, fixed when it began. */
  removals: string[];
  /** By position: what a run of resources looked like before it was changed. */
  intents: Map<number, Intent>;
  /** The position of a resource that cannot be re-checked and whose execution began. */
  step: { position: number; process: ProcessIdentity | null; before: Json | null } | null;
  /** What was recorded of resources that are about to get a result, by key. */
  befores: Map<string, Json>;
  /** Of an apply: results in order of position, without what only people need. */
  results: ResourceResult[];
  /** Of an apply: the highest place in the order of removal among its resources so far; absent before the first. */
  lastOrdinal?: number;
  /** Directories made on the way. */
  freshDirectories: Set<string>;
  finished: FinishedReport | null;
}

export interface Intent {
  seen: Json;
  before: Json | null;
}

/** Something an earlier apply was in charge of. */
export interface ManagedRecord {
  /** As last declared, whether or not it succeeded. */
  resource: ResolvedResource;
  /** As it last succeeded. */
  succeeded: ResolvedResource | null;
  /** What the provider recorded before the first change; null: it was as declared when we came. */
  before: Json | null;
  /** Grows in the order of the sets that were applied: removal goes from the highest down. */
  ordinal: number;
}

export interface SpooledReports {
  seq: number;
  reports: Report[];
  bytes: number;
}

export interface JournalState {
  operations: Map<string, OperationRecord>;
  /** Operations whose end is acknowledged, oldest first: a late second delivery is answered from here. */
  past: Map<string, FinishedReport>;
  managed: Map<string, ManagedRecord>;
  /** Directories that were made because something below them was declared. */
  ourDirectories: Set<string>;
  /** Triggers that were due when their operation ended without them: key of the resource, ids of what changed. */
  pendingTriggers: Map<string, string[]>;
  /** The desired set of the last apply that succeeded. */
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
const perApply = 2 ** 20;

/** Applies one event. Never fails: an event about what is no longer there changes nothing. */
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
  const well = result.status === 'unchanged' || result.status === 'changed';
  if (resource === undefined) {
    const key = operation.removals[position - resources.length];
    if (!well || key === undefined) return;
    const removed = state.managed.get(key)?.resource;
    state.managed.delete(key);
    // It is gone, or is again what was there before us.
    if (removed?.type === 'directory-unix' && result.action === 'remove') state.ourDirectories.delete(removed.identity);
    return;
  }
  const { key } = resource;
  const recorded = state.managed.get(key);
  const before = operation.befores.get(key);
  operation.befores.delete(key);
  // What failed without having changed anything is none of ours.
  if (!well && before === undefined && recorded === undefined) return;
  if (result.status === 'skipped') return;
  if (!well && recorded !== undefined && recorded.resource.type !== resource.type) return;
  state.managed.delete(key);
  state.managed.set(key, {
    resource,
    succeeded: well ? resource : (recorded?.succeeded ?? null),
    before: before ?? recorded?.before ?? null,
    ordinal: ordinalFor(state, operation, position, recorded),
  });
  if (isDirectory(resource)) state.ourDirectories.delete(resource.identity);
}

/** A resource that answers for a directory itself, so that it is not one that was made on the way. */
export const isDirectory = ({ type, body }: ResolvedResource): boolean =>
  type === 'directory-unix' && !('ensure' in body && body.ensure === 'absent');

/**
 * A resource keeps its place in the order of removal for as long as it fits the order of the set: what is not in this
 * set, or failed before, stays between what it was put in place between.
 */
function ordinalFor(
  state: JournalState,
  operation: OperationRecord,
  position: number,
  recorded: ManagedRecord | undefined,
): number {
  const keeps = recorded !== undefined && recorded.ordinal > (operation.lastOrdinal ?? -1);
  operation.lastOrdinal = keeps ? recorded.ordinal : state.applies * perApply + position;
  return operation.lastOrdinal;
}

function recordEnd(state: JournalState, event: Extract<JournalEvent, { t: 'ended' }>): void {
  const operation = state.operations.get(event.id);
  if (operation === undefined) return;
  if (event.snapshot) {
    const { resources, keep_modules } = operation.message;
    const desired = new Set(resources.map(({ key }) => key));
    const kept = [...state.managed.values()].filter(
      ({ resource, succeeded }) =>
        succeeded !== null && !desired.has(resource.key) && keep_modules.includes(resource.module),
    );
    state.snapshot = {
      operationId: event.id,
      resources: [...resources, ...kept.map(({ succeeded }) => succeeded as ResolvedResource)],
    };
  }
  if (operation.message.kind === 'apply') {
    adopt(state, operation);
    state.pendingTriggers = new Map(event.pending);
  }
  operation.state = 'finished';
  operation.finished = event.finished;
  // Its resources are held by the records above as far as they still count.
  operation.message = { ...operation.message, resources: [] };
  operation.results = [];
  operation.intents.clear();
  operation.befores.clear();
  operation.freshDirectories.clear();
  operation.step = null;
}

/** What was changed and never got a result, because the operation was given up: it is ours all the same. */
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
      ordinal: recorded?.ordinal ?? state.applies * perApply + position,
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
  // One that has not ended is told to by the engine; its end is recorded first.
  if (operation.finished === null) return;
  state.operations.delete(id);
  state.past.set(id, operation.finished);
  for (const oldest of state.past.keys()) {
    if (state.past.size <= maxPast) break;
    state.past.delete(oldest);
  }
}
