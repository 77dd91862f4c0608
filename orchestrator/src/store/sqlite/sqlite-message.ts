import type { ConstraintViolation } from '../database.ts';
import type { BoundValue } from '../params.ts';
import type { StatementResult } from '../transaction.ts';

/** Messages between the main thread and the writer thread. They are compact, because each is cloned. */

/** 0 none, 1 changed, 2 row, 3 no_row. */
export type WireExpectation = 0 | 1 | 2 | 3;

export type WireStatement = readonly [queryId: number, values: readonly BoundValue[], expect: WireExpectation];

export interface WireUnit {
  readonly id: number;
  readonly statements: readonly WireStatement[];
}

export type ToWriter =
  | {
      readonly kind: 'units';
      /** Queries that the writer does not know yet. */
      readonly queries: readonly (readonly [id: number, sql: string])[];
      readonly units: readonly WireUnit[];
    }
  | { readonly kind: 'close' };

/** The result of a statement. For a statement without `returning`, only the number of changes. */
export type WireResult = number | StatementResult;

export type Answer =
  | { readonly id: number; readonly outcome: 'committed'; readonly results: readonly WireResult[] }
  /** The precondition of the statement at `index` did not hold. */
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
  | { readonly kind: 'answers'; readonly answers: readonly Answer[]; readonly commits: number; readonly ms: number }
  /** The writer failed, and the process must exit. */
  | { readonly kind: 'fatal'; readonly message: string }
  | { readonly kind: 'closed' };
