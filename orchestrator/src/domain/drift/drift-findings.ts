import { type ResourceResult, type Summary, summarise } from '@muster/protocol';
import type { DriftRecord } from '@muster/protocol/http';
import { keyOf } from '../operations/applied-state.ts';
import { sizeOfDetails, sizeOfNames, withoutDetails } from '../operations/kept-results.ts';
import { fingerprintOf } from './drift-fingerprint.ts';

/** Collects the findings of a check from its results, page by page, within the per-record limits. */

/**
 * Maximum number of bytes of names and details per record. Agents create records unprompted, and many records are read
 * together.
 */
export interface RecordLimits {
  readonly names: number;
  readonly details: number;
}
export const defaultRecordLimits: RecordLimits = { names: 512 * 1024, details: 256 * 1024 };
/** Limits for an agent that has reached its daily limit, and for all agents while the disk is nearly full. */
export const reducedRecordLimits: RecordLimits = { names: 8 * 1024, details: 0 };

/** A resource that differs from its declaration. */
export interface Deviation {
  readonly key: string;
  /** The result; without details if they exceed the record's limit. */
  readonly result: ResourceResult;
  /** The drifted fields. A result without fields, for example from a script that would run, counts as one field. */
  readonly fields: readonly string[];
  /** A fingerprint that distinguishes different drifts of the same resource. */
  readonly fingerprint: string;
}

export interface Verdict {
  readonly status: DriftRecord['status'];
  readonly deviations: readonly Deviation[];
  readonly complete: boolean;
}

export function deviationOf(result: ResourceResult): Deviation {
  const { type, identity, changes, action, status } = result;
  const fields = changes.length > 0 ? changes.map(({ field }) => field) : [status === 'failed' ? 'failed' : action];
  return { key: keyOf(type, identity), result, fields: [...new Set(fields)], fingerprint: fingerprintOf(result) };
}

export function createFindings(limits: RecordLimits) {
  const deviations: Deviation[] = [];
  let any = false;
  let wouldChange = false;
  let namesLeft = limits.names;
  let detailsLeft = limits.details;
  const summary: Summary = { total: 0, unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 };

  function take(result: ResourceResult): void {
    const { status } = result;
    if (status === 'unchanged' || status === 'skipped') return;
    any = true;
    wouldChange ||= status === 'would_change';
    if (namesLeft < 0) return;
    const deviation = deviationOf(result);
    namesLeft -= sizeOfNames(result) + deviation.fields.reduce((sum, field) => sum + field.length, 0);
    if (namesLeft < 0) return;
    const details = sizeOfDetails(result);
    const fits = details <= detailsLeft;
    if (fits) detailsLeft -= details;
    deviations.push(
      fits ? deviation : { ...deviation, result: withoutDetails(result, 'the drift record is too large') },
    );
  }

  return {
    take(results: readonly ResourceResult[]): void {
      const counted = summarise(results);
      for (const name of Object.keys(summary) as (keyof Summary)[]) summary[name] += counted[name];
      for (const result of results) take(result);
    },
    summary: (): Summary => summary,
    /** Returns the verdict. A failed check that found drift counts as drifted. */
    verdict(status: 'succeeded' | 'failed' | 'cancelled'): Verdict {
      if (status === 'succeeded') return { status: any ? 'drifted' : 'in_sync', deviations, complete: true };
      return { status: status === 'failed' && wouldChange ? 'drifted' : status, deviations, complete: false };
    },
  };
}
