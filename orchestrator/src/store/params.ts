/**
 * Parameters of a query. While a query is built, placeholders stand for values; when it runs, the slots of the compiled
 * statement are filled from an object of values.
 */

export type ParamValue = string | number | boolean | null | Uint8Array | readonly string[] | readonly number[];

/** A value in the form that the databases take. */
export type BoundValue = string | number | null | Uint8Array | readonly string[] | readonly number[];

/** Stands for the value of one parameter inside a query that is being built. */
export class Placeholder {
  readonly param: string;
  constructor(param: string) {
    this.param = param;
  }
}

/** A parameter that holds a list; the dialect decides how it is passed to the database. */
export class ListPlaceholder extends Placeholder {
  readonly elements: 'text' | 'integer';
  constructor(param: string, elements: 'text' | 'integer') {
    super(param);
    this.elements = elements;
  }
}

/** A `?` or `$n` of a compiled statement: a constant of the query, or a parameter by name. */
export type Slot = { readonly value: BoundValue } | { readonly param: string; readonly list: boolean };

/** An object with a placeholder for every property, typed as the values. */
export function placeholders<P>(): P {
  return new Proxy(
    {},
    { get: (_, name) => (typeof name === 'string' ? new Placeholder(name) : undefined) },
  ) as unknown as P;
}

const nul = '\u0000';

/**
 * Text that both databases can hold: PostgreSQL refuses NUL and lone surrogates, and only production would show the
 * difference. Each becomes U+FFFD.
 */
export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes(nul) ? whole.replaceAll(nul, '\ufffd') : whole;
}

/** Rows for `Dialect.rowsOf`: one JSON array. Booleans become 1 and 0. */
export function jsonRows(rows: readonly Readonly<Record<string, string | number | boolean | null>>[]): string {
  return JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'string' ? storableText(value) : typeof value === 'boolean' ? Number(value) : value,
  );
}

/** The form of a single value that both databases take. */
export function plainValue(value: Exclude<ParamValue, readonly unknown[]>): BoundValue {
  if (typeof value === 'string') return storableText(value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} cannot be stored`);
  return value;
}
