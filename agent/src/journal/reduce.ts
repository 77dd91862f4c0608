import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { Report } from '@muster/protocol/wire';
import {
  isDirectory,
  type JournalEvent,
  type JournalState,
  type ManagedRecord,
  newOperation,
  type OperationRecord,
  type SpooledReports,
} from './state.ts';

const maxPast = 1024;
const ordinalsPerApply = 2 ** 20;

type EventOf<T extends JournalEvent['t']> = Extract<JournalEvent, { t: T }>;
type Reducer<T extends JournalEvent['t']> = (state: JournalState, event: EventOf<T>) => void;

/** The effect of each event. Events that refer to an unknown operation or entry change nothing. */
const reducers: { readonly [T in JournalEvent['t']]: Reducer<T> } = {
  accepted({ operations }, { message }) {
    operations.set(message.operation_id, newOperation(message));
  },
  cancelled({ operations }, { id }) {
    const operation = operations.get(id);
    if (operation !== undefined) operation.cancelled = true;
  },
  began(state, { id, at, removals }) {
    const operation = state.operations.get(id);
    if (operation === undefined) return;
    operation.state = 'running';
    operation.startedAt = at;
    operation.removals = removals;
    if (operation.message.kind === 'apply') state.applies++;
  },
  intents({ operations }, { id, entries }) {
    const operation = operations.get(id);
    for (const { position, ...intent } of entries) operation?.intents.set(position, intent);
  },
  step({ operations }, { id, position, process, before }) {
    const operation = operations.get(id);
    if (operation !== undefined) operation.step = { position, process, before };
  },
  before({ operations }, { id, key, before }) {
    operations.get(id)?.befores.set(key, before);
  },
  directories({ operations, managed, ourDirectories }, { id, made, gone }) {
    for (const path of made) {
      const declared = managed.get(`path:${path}`)?.resource;
      if (declared === undefined || !isDirectory(declared)) ourDirectories.add(path);
      if (id !== null) operations.get(id)?.freshDirectories.add(path);
    }
    for (const path of gone) ourDirectories.delete(path);
  },
  report(state, { seq, reports }) {
    const bytes = Buffer.byteLength(JSON.stringify(reports));
    state.spool.set(seq, { seq, reports, bytes });
    state.spoolBytes += bytes;
    state.lastSeq = Math.max(state.lastSeq, seq);
    for (const report of reports) recordReport(state, report);
  },
  ended: recordEnd,
  acknowledged(state, { seq }) {
    for (const entry of state.spool.values()) {
      if (entry.seq > seq) break;
      drop(state, entry);
      for (const report of entry.reports) if (report.type === 'finished') settle(state, report.operation_id);
    }
  },
  settled(state, { ids }) {
    for (const id of ids) settle(state, id);
  },
  dropped(state, { seqs }) {
    for (const seq of seqs) {
      const entry = state.spool.get(seq);
      if (entry !== undefined) drop(state, entry);
    }
  },
  renumbered(state, { above }) {
    const entries = [...state.spool.values()];
    state.spool.clear();
    state.lastSeq = above;
    for (const entry of entries) {
      const seq = ++state.lastSeq;
      state.spool.set(seq, { ...entry, seq });
    }
  },
};

/**
 * Applies one event to the state. Nothing else changes the state, so replaying the journal results in the same state.
 * Never throws.
 */
export function reduce(state: JournalState, event: JournalEvent): void {
  // Ignores event types that this version does not support.
  const reducer = reducers[event.t] as Reducer<typeof event.t> | undefined;
  reducer?.(state, event as never);
}

function recordReport(state: JournalState, report: Report): void {
  const operation = state.operations.get(report.operation_id);
  if (operation === undefined) return;
  if (report.type === 'accepted') operation.acceptedReported = true;
  if (report.type === 'results' && operation.message.kind === 'apply' && operation.state === 'running')
    report.results.forEach((result, i) => {
      recordResult(state, operation, report.position + i, result);
    });
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
    // The directory was removed or restored, so it no longer belongs to the agent.
    if (removed?.type === 'directory-unix' && result.action === 'remove') state.ourDirectories.delete(removed.identity);
    return;
  }
  // If a killed agent changed this resource, `adopt` adds it to the managed resources when the operation finishes.
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

/**
 * Returns the ordinal of an applied resource: the recorded one if it fits the order of the set. As a result, resources
 * that are not in this set, or that failed earlier, keep their position relative to their neighbors.
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

function recordEnd(state: JournalState, event: EventOf<'ended'>): void {
  const operation = state.operations.get(event.id);
  if (operation === undefined) return;
  if (event.snapshot) {
    const { resources, keep_modules } = operation.message;
    const desired = new Set(resources.map(({ key }) => key));
    // A resource that was skipped because of its condition stays in the snapshot as last applied, if it was ever
    // applied.
    const applied = resources.flatMap((resource, position) =>
      operation.results[position]?.status === 'skipped'
        ? (state.managed.get(resource.key)?.succeeded ?? [])
        : [resource],
    );
    const retained = [...state.managed.values()].filter(
      ({ resource, succeeded }) =>
        succeeded !== null && !desired.has(resource.key) && keep_modules.includes(resource.module),
    );
    state.snapshot = {
      operationId: event.id,
      resources: [...applied, ...retained.map(({ succeeded }) => succeeded as ResolvedResource)],
    };
  }
  if (operation.message.kind === 'apply') {
    adopt(state, operation);
    state.pendingTriggers = new Map(event.pending);
  }
  operation.state = 'finished';
  operation.finished = event.finished;
  // The managed records and the snapshot contain the resources that are still needed.
  operation.message = { ...operation.message, resources: [] };
  operation.results = [];
  operation.intents.clear();
  operation.befores.clear();
  operation.freshDirectories.clear();
  operation.step = null;
}

/** Manages resources that an abandoned operation changed without reporting a result. */
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
  // The engine finishes an open operation first, and the journal records that before the operation is settled.
  if (operation.finished === null) return;
  state.operations.delete(id);
  state.past.set(id, operation.finished);
  for (const oldest of state.past.keys()) {
    if (state.past.size <= maxPast) break;
    state.past.delete(oldest);
  }
}
