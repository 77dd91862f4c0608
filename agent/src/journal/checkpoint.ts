import type { ResolvedResource } from '@muster/protocol/module';
import type { Report } from '@muster/protocol/wire';
import { HostFailure } from '../host/failure.ts';
import type { Json } from '../resources/provider/provider.ts';
import { reduce } from './reduce.ts';
import type { FinishedReport, Intent, JournalEvent, JournalState, OperationRecord } from './state.ts';

/**
 * Writes the whole state as the first lines of a new journal file, and reads it back. Writes each resource once,
 * because the managed records and the snapshot usually share their resources.
 */

/** Version of the file format. An agent can also read all earlier versions. */
const journalVersion = 1;

type OperationLine = Omit<OperationRecord, 'message' | 'intents' | 'befores' | 'freshDirectories'> & {
  message: Omit<OperationRecord['message'], 'resources'>;
  resources: number[];
  intents: [number, Intent][];
  befores: [string, Json][];
  freshDirectories: string[];
};

type CheckpointLine =
  | { t: 'journal'; version: number; lastSeq: number; applies: number }
  | { t: 'resource'; resource: ResolvedResource }
  | { t: 'managed'; resource: number; succeeded: number | null; before: Json | null; ordinal: number }
  | { t: 'operation'; operation: OperationLine }
  | { t: 'past'; entries: [string, FinishedReport][] }
  | {
      t: 'rest';
      ourDirectories: string[];
      pendingTriggers: [string, string[]][];
      snapshot: { operationId: string; resources: number[] } | null;
    }
  | { t: 'spooled'; seq: number; reports: Report[]; bytes: number };

export type JournalLine = CheckpointLine | JournalEvent[];

export function* checkpoint(state: JournalState): Generator<CheckpointLine> {
  yield { t: 'journal', version: journalVersion, lastSeq: state.lastSeq, applies: state.applies };
  const numbers = new Map<ResolvedResource, number>();
  const all = new Set<ResolvedResource>();
  for (const { resource, succeeded } of state.managed.values()) {
    all.add(resource);
    if (succeeded !== null) all.add(succeeded);
  }
  for (const { message } of state.operations.values()) for (const resource of message.resources) all.add(resource);
  for (const resource of state.snapshot?.resources ?? []) all.add(resource);
  for (const resource of all) {
    numbers.set(resource, numbers.size);
    yield { t: 'resource', resource };
  }
  const numberOf = (resource: ResolvedResource): number => numbers.get(resource) as number;
  for (const { resource, succeeded, before, ordinal } of state.managed.values())
    yield {
      t: 'managed',
      resource: numberOf(resource),
      succeeded: succeeded === null ? null : numberOf(succeeded),
      before,
      ordinal,
    };
  for (const operation of state.operations.values()) {
    const { resources, ...message } = operation.message;
    yield {
      t: 'operation',
      operation: {
        ...operation,
        message,
        resources: resources.map(numberOf),
        intents: [...operation.intents],
        befores: [...operation.befores],
        freshDirectories: [...operation.freshDirectories],
      },
    };
  }
  yield { t: 'past', entries: [...state.past] };
  const { snapshot } = state;
  yield {
    t: 'rest',
    ourDirectories: [...state.ourDirectories],
    pendingTriggers: [...state.pendingTriggers],
    snapshot:
      snapshot === null ? null : { operationId: snapshot.operationId, resources: snapshot.resources.map(numberOf) },
  };
  for (const { seq, reports, bytes } of state.spool.values()) yield { t: 'spooled', seq, reports, bytes };
}

/**
 * Returns a function that reads one line into the state, for each line in order. It throws HostFailure if a newer agent
 * wrote the journal.
 */
export function replayInto(state: JournalState): (line: unknown) => void {
  const resources: ResolvedResource[] = [];
  const resourceAt = (number: number): ResolvedResource => resources[number] as ResolvedResource;
  return (value) => {
    const line = value as JournalLine;
    if (Array.isArray(line)) {
      for (const event of line) reduce(state, event);
      return;
    }
    switch (line.t) {
      case 'journal':
        if (line.version > journalVersion)
          throw new HostFailure(
            `the journal was written by a newer agent (format ${line.version}, this agent reads up to format ${journalVersion}); start the newer agent again`,
          );
        state.lastSeq = line.lastSeq;
        state.applies = line.applies;
        return;
      case 'resource':
        resources.push(line.resource);
        return;
      case 'managed': {
        const resource = resourceAt(line.resource);
        state.managed.set(resource.key, {
          resource,
          succeeded: line.succeeded === null ? null : resourceAt(line.succeeded),
          before: line.before,
          ordinal: line.ordinal,
        });
        return;
      }
      case 'operation': {
        const { resources: numbers, message, intents, befores, freshDirectories, ...rest } = line.operation;
        state.operations.set(message.operation_id, {
          ...rest,
          message: { ...message, resources: numbers.map(resourceAt) },
          intents: new Map(intents),
          befores: new Map(befores),
          freshDirectories: new Set(freshDirectories),
        });
        return;
      }
      case 'past':
        state.past = new Map(line.entries);
        return;
      case 'rest':
        state.ourDirectories = new Set(line.ourDirectories);
        state.pendingTriggers = new Map(line.pendingTriggers);
        state.snapshot =
          line.snapshot === null
            ? null
            : { operationId: line.snapshot.operationId, resources: line.snapshot.resources.map(resourceAt) };
        return;
      case 'spooled':
        state.spool.set(line.seq, { seq: line.seq, reports: line.reports, bytes: line.bytes });
        state.spoolBytes += line.bytes;
    }
  };
}
