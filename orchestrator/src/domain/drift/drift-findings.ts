import { type ResourceResult, type Summary, summarise } from '@muster/protocol';
import type { DriftRecord } from '@muster/protocol/http';
import { keyOf } from '../operations/applied-state.ts';
import { bare, detailsOf, namesOf } from '../operations/kept-results.ts';
import { fingerprintOf } from './drift-fingerprint.ts';

/** What a check finds, from its results a page at a time: no more of it is held than one record holds. */

/** Bytes of names and of details in one record: agents make records of their own accord, and many are read at a time. */
export interface RecordLimits {
  readonly names: number;
  readonly details: number;
}
export const usualRecord: RecordLimits = { names: 512 * 1024, details: 256 * 1024 };
/** For an agent that has used up its day, and for all while the disk is nearly full. */
export const frugalRecord: RecordLimits = { names: 8 * 1024, details: 0 };

/** One resource that is not as it should be. */
export interface Deviation {
  readonly key: string;
  /** Without its details where those of the record come to too much. */
  readonly result: ResourceResult;
  /** That moved. One that names no field, such as a script that would run, stands for itself. */
  readonly fields: readonly string[];
  /** Tells this deviation from another one of the same resource. */
  readonly fingerprint: string;
}

/** `whole`: everything was looked at. */
export interface Verdict {
  readonly status: DriftRecord['status'];
  readonly deviations: readonly Deviation[];
  readonly whole: boolean;
}

export function deviationOf(result: ResourceResult): Deviation {
  const { type, identity, changes, action, status } = result;
  const fields = changes.length > 0 ? changes.map(({ field }) => field) : [status === 'failed' ? 'failed' : action];
  return { key: keyOf(type, identity), result, fields: [...new Set(fields)], fingerprint: fingerprintOf(result) };
}

/** Gathers what a check found. */
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
    namesLeft -= namesOf(result) + deviation.fields.reduce((sum, field) => sum + field.length, 0);
    if (namesLeft < 0) return;
    const details = detailsOf(result);
    const fits = details <= detailsLeft;
    if (fits) detailsLeft -= details;
    deviations.push(fits ? deviation : { ...deviation, result: bare(result, 'those of this record come to too much') });
  }

  return {
    take(results: readonly ResourceResult[]): void {
      const counted = summarise(results);
      for (const name of Object.keys(summary) as (keyof Summary)[]) summary[name] += counted[name];
      for (const result of results) take(result);
    },
    /** Of everything that was taken. */
    summary: (): Summary => summary,
    /** What the check says. One that could not look at everything, and found drift elsewhere, has found drift. */
    verdict(status: 'succeeded' | 'failed' | 'cancelled'): Verdict {
      if (status === 'succeeded') return { status: any ? 'drifted' : 'in_sync', deviations, whole: true };
      return { status: status === 'failed' && wouldChange ? 'drifted' : status, deviations, whole: false };
    },
  };
}
