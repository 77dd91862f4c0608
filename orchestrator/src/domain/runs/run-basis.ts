import type { Assignment } from '@muster/protocol/http';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import type { RunsTable } from '../../store/schema.ts';
import type { Revisions } from '../modules/modules.ts';
import { defaultTtlSecs } from '../operations/operations.ts';
import type { WaveRules } from './run-waves.ts';

/** What a run is by: fixed when it is asked for, so that its last agent gets what its first one got. */

export interface RunRequest {
  kind: 'apply' | 'plan';
  /** At most so many agents at one time: a number, or a share of all in percent. */
  batch?: number | string | undefined;
  /** With more failures the run is halted. */
  max_failures?: number | undefined;
  /** So many go first, and the others only once all of them have succeeded. */
  canary?: number | undefined;
  offline?: 'report' | 'queue' | undefined;
  ttl?: number | undefined;
  plan_run_id?: string | undefined;
}

/** Kept with the run. */
export interface RunOptions {
  offline: 'report' | 'queue';
  /** As a number of agents; null: as the configuration says. */
  batch: number | null;
  max_failures: number | null;
  canary: number;
  ttl: number;
  plan_run_id: string | null;
}

/** Kept beside it, since it may be long. */
export interface RunBasis {
  /** Null: agents that were named, and `modules` for them. */
  assignment: Assignment | null;
  /** Besides those that assignments give; those of an earlier release have none. */
  modules?: readonly string[];
  /** Every assignment there was, by name. */
  assignments: Assignment[];
  /** The revision of each module that an assignment names. */
  revisions: Record<string, number>;
}

export interface RunTerms extends RunOptions {
  readonly runId: string;
  readonly kind: 'apply' | 'plan';
  readonly assignment: Assignment | null;
  readonly modules: readonly string[];
  readonly assignments: readonly Assignment[];
  readonly revisions: Revisions;
  readonly requestedBy: string;
  /** Unix seconds. */
  readonly startedAt: number;
}

/** @param agents how many the run is about */
export function optionsOf(request: RunRequest, agents: number): RunOptions {
  return {
    offline: request.offline ?? 'report',
    batch: batchOf(request.batch, agents),
    max_failures: request.max_failures ?? null,
    canary: request.canary ?? 0,
    ttl: request.ttl ?? defaultTtlSecs,
    plan_run_id: request.plan_run_id ?? null,
  };
}

/** A share is of all agents of the run, and one agent at least. */
export function batchOf(batch: number | string | undefined, agents: number): number | null {
  if (batch === undefined) return null;
  if (typeof batch === 'number') return batch;
  return Math.max(1, Math.floor((agents * Number.parseInt(batch, 10)) / 100));
}

/** @param maxConcurrent what the configuration allows every run */
export function rulesOf(options: RunOptions, maxConcurrent: number): WaveRules {
  const paced = options.batch !== null || options.canary > 0;
  return {
    limit: Math.min(options.batch ?? maxConcurrent, maxConcurrent),
    canary: options.canary,
    maxFailures: options.max_failures,
    // Who asks for a pace must not see all that were away begin at once when they come back.
    absent: options.offline === 'report' ? 'report' : paced ? 'hold' : 'queue',
  };
}

type Row = Pick<RunsTable, 'run_id' | 'kind' | 'requested_by' | 'started_at'> & { options: JsonText<unknown> };

export function termsOf(row: Row, basisText: JsonText<unknown>): RunTerms {
  const basis = fromJson(basisText) as RunBasis;
  return {
    ...optionsIn(row.options),
    runId: row.run_id,
    kind: row.kind === 'plan' ? 'plan' : 'apply',
    assignment: basis.assignment,
    modules: basis.modules ?? [],
    assignments: basis.assignments,
    revisions: new Map(Object.entries(basis.revisions)),
    requestedBy: row.requested_by,
    startedAt: row.started_at,
  };
}

/** Runs of an earlier release hold less. */
export const optionsIn = (text: JsonText<unknown>): RunOptions => ({
  ...optionsOf({ kind: 'apply' }, 0),
  ...(fromJson(text) as Partial<RunOptions>),
});
