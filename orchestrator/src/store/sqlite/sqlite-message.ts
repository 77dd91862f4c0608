import type { ConstraintViolation } from '../database.ts';
import type { BoundValue } from '../params.ts';
import type { StatementResult } from '../transaction.ts';

/**
 * Messages between the main thread and the writer thread. Writes and their results are sent as flat lists, because
 * cloning a flat list takes about half the time of cloning objects.
 */

/** 0: none, 1: changed, 2: row, 3: no_row. */
export type WireExpectation = 0 | 1 | 2 | 3;

export type WireStatement = readonly [queryId: number, values: readonly BoundValue[], expect: WireExpectation];

export interface WireUnit {
  readonly id: number;
  readonly statements: readonly WireStatement[];
}

/** Writes as a flat list, created by {@link flatUnits}. */
export type FlatUnits = readonly BoundValue[];

/** Results as a flat list, created by {@link flatAnswers}. */
export type FlatAnswers = readonly (number | Answer)[];

export type ToWriter =
  | {
      readonly kind: 'units';
      /** Queries that have not been sent to the writer yet. */
      readonly queries: readonly (readonly [id: number, sql: string])[];
      readonly units: FlatUnits;
    }
  /** Asks whether another process has written since the last group. */
  | { readonly kind: 'look' }
  | { readonly kind: 'close' };

/** The result of a statement; without `returning`, only the number of changes. */
export type WireResult = number | StatementResult;

export type Answer =
  | { readonly id: number; readonly outcome: 'committed'; readonly results: readonly WireResult[] }
  /** The precondition for the statement at `index` did not hold. */
  | { readonly id: number; readonly outcome: 'refused'; readonly index: number }
  | {
      readonly id: number;
      readonly outcome: 'constraint';
      readonly constraint: ConstraintViolation['constraint'];
      readonly message: string;
    }
  | { readonly id: number; readonly outcome: 'full' | 'unavailable' | 'bug'; readonly message: string };

export type FromWriter =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'answers';
      readonly answers: FlatAnswers;
      readonly commits: number;
      readonly ms: number;
      /** Whether another process has written since the last group. */
      readonly outside: boolean;
    }
  /** Another process has written since the last group. */
  | { readonly kind: 'outside' }
  /** The writer failed, and the process must exit. */
  | { readonly kind: 'fatal'; readonly message: string }
  | { readonly kind: 'closed' };

export function flatUnits(units: readonly WireUnit[]): FlatUnits {
  const flat: BoundValue[] = [];
  for (const { id, statements } of units) {
    flat.push(id, statements.length);
    for (const [query, values, expect] of statements) {
      flat.push(query, expect, values.length);
      for (const value of values) flat.push(value);
    }
  }
  return flat;
}

export function unitsIn(flat: FlatUnits): WireUnit[] {
  const units: WireUnit[] = [];
  for (let at = 0; at < flat.length; ) {
    const id = flat[at++] as number;
    const statements: WireStatement[] = [];
    for (let left = flat[at++] as number; left > 0; left--) {
      const query = flat[at++] as number;
      const expect = flat[at++] as WireExpectation;
      const end = at + 1 + (flat[at++] as number);
      statements.push([query, flat.slice(at, end), expect]);
      at = end;
    }
    units.push({ id, statements });
  }
  return units;
}

/**
 * Encodes results as a flat list. A committed write that returned no rows is encoded as its ID, the number of
 * statements, and the number of changes for each statement.
 */
export function flatAnswers(answers: readonly Answer[]): FlatAnswers {
  const flat: (number | Answer)[] = [];
  for (const answer of answers)
    if (answer.outcome === 'committed' && answer.results.every((result) => typeof result === 'number'))
      flat.push(answer.id, answer.results.length, ...answer.results);
    else flat.push(answer);
  return flat;
}

export function answersIn(flat: FlatAnswers): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < flat.length; ) {
    const item = flat[at++]!;
    if (typeof item === 'number') {
      const end = at + 1 + (flat[at++] as number);
      answers.push({ id: item, outcome: 'committed', results: flat.slice(at, end) as number[] });
      at = end;
    } else answers.push(item);
  }
  return answers;
}
