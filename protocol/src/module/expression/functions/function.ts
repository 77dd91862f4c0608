import type { Meter } from '../meter.ts';

/** A function that expressions can call, and its documentation. */
export interface ExpressionFunction {
  readonly name: string;
  /** The human-readable signature, such as `join(list, separator)`. */
  readonly form: string;
  /** CEL signatures. A leading `string.` makes the function a method. */
  readonly signatures: readonly string[];
  readonly about: string;
  /** Expressions with their results as JSON. A test evaluates them. */
  readonly examples: readonly (readonly [expression: string, result: string])[];
  /** The code; absent for macros, whose arguments are evaluated only when needed. */
  readonly call?: (meter: Meter, ...values: never[]) => unknown;
}
