import type { Assignment } from '@muster/protocol/http';
import type { Requires } from '@muster/protocol/module';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import type { RunsTable } from '../../store/schema.ts';
import { defaultTtlSecs } from '../operations/operations.ts';
import type { Revisions } from '../shared/module-documents.ts';
import type { WaveRules } from './run-waves.ts';

/**
 * Defines the terms of a run. They are fixed at the time of the request, so that all agents in the run get the same
 * modules.
 */

export interface RunRequest {
  kind: 'apply' | 'plan';
  /**
   * Maximum number of agents that run an operation at the same time: a number, or a percentage of the run's agents.
   */
  batch?: number | string | undefined;
  /** Maximum number of failures. The run is halted when it is exceeded. */
  max_failures?: number | undefined;
  /** Number of canaries. They run first, and the other agents follow only if all canaries succeed. */
  canary?: number | undefined;
  offline?: 'report' | 'queue' | undefined;
  ttl?: number | undefined;
  plan_run_id?: string | undefined;
}

export interface RunOptions {
  offline: 'report' | 'queue';
  /** Number of agents; null for the configured maximum. */
  batch: number | null;
  max_failures: number | null;
  canary: number;
  ttl: number;
  plan_run_id: string | null;
}

/** The large terms, which are stored in a separate table. */
export interface RunBasis {
  /** Null for a run on named agents, to which `modules` applies. */
  assignment: Assignment | null;
  /** Modules in addition to those of assignments; absent in runs from earlier releases. */
  modules?: readonly string[];
  /** All assignments at the time of the request, by name. */
  assignments: Assignment[];
  /** Revision of each module that an assignment specifies, or that such a module requires. */
  revisions: Record<string, number>;
  /** The modules that each module requires; absent in runs from earlier releases. */
  requires?: Record<string, readonly string[]>;
}

export interface RunTerms extends RunOptions {
  readonly runId: string;
  readonly kind: 'apply' | 'plan';
  readonly assignment: Assignment | null;
  readonly modules: readonly string[];
  readonly assignments: readonly Assignment[];
  readonly revisions: Revisions;
  readonly requires: Requires;
  readonly requestedBy: string;
  readonly startedAt: number;
}

/**
 * Returns the options to store.
 * @param agents number of agents in the run
 */
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

/** Converts a percentage to a number of agents, at least one. Null means the configured maximum. */
export function batchOf(batch: number | string | undefined, agents: number): number | null {
  if (batch === undefined) return null;
  if (typeof batch === 'number') return batch;
  return Math.max(1, Math.floor((agents * Number.parseInt(batch, 10)) / 100));
}

/**
 * Returns the rules for a run's waves.
 * @param maxConcurrent configured maximum for all runs
 */
export function rulesOf(options: RunOptions, maxConcurrent: number): WaveRules {
  const paced = options.batch !== null || options.canary > 0;
  return {
    limit: Math.min(options.batch ?? maxConcurrent, maxConcurrent),
    canary: options.canary,
    maxFailures: options.max_failures,
    // A paced run holds absent agents until they connect. Otherwise, all their queued operations would start as soon as
    // they reconnect.
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
    requires: new Map(Object.entries(basis.requires ?? {})),
    requestedBy: row.requested_by,
    startedAt: row.started_at,
  };
}

/** Parses stored options. Those from earlier releases lack some fields. */
export const optionsIn = (text: JsonText<unknown>): RunOptions => ({
  ...optionsOf({ kind: 'apply' }, 0),
  ...(fromJson(text) as Partial<RunOptions>),
});
