import type { Meter } from '../meter.ts';

/** A function that expressions can call, and its documentation. */
export interface ExpressionFunction {
  readonly name: string;
  /** The form for readers, such as `join(list, separator)`. */
  readonly form: string;
  /** CEL signatures; a leading `string.` makes it a method. */
  readonly signatures: readonly string[];
  readonly about: string;
  /** Expressions with their values as JSON, which a test evaluates. */
  readonly examples: readonly (readonly [expression: string, result: string])[];
  /** Absent for macros, whose arguments are evaluated only when they are needed. */
  readonly call?: (meter: Meter, ...values: never[]) => unknown;
}
