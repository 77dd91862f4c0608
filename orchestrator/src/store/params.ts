/**
 * Parameters of a query. While a query is built they are placeholders in the place of values; when it runs, the slots
 * that the placeholders left in the compiled statement are filled from an object of values.
 */

export type ParamValue = string | number | boolean | null | Uint8Array | readonly string[] | readonly number[];

/** What a database is handed. */
export type BoundValue = string | number | null | Uint8Array | readonly string[] | readonly number[];

/** Stands for the value of one parameter inside a query that is being built. */
export class Placeholder {
  readonly param: string;
  constructor(param: string) {
    this.param = param;
  }
}

/** A parameter that holds a list; which form a database wants it in is the dialect's affair. */
export class ListPlaceholder extends Placeholder {
  readonly elements: 'text' | 'integer';
  constructor(param: string, elements: 'text' | 'integer') {
    super(param);
    this.elements = elements;
  }
}

/** One `?` or `$n` of a compiled statement: a constant of the query, or a parameter by name. */
export type Slot = { readonly value: BoundValue } | { readonly param: string; readonly list: boolean };

/** An object whose every property is the placeholder of that name, typed as the values it will stand for. */
export function placeholders<P>(): P {
  return new Proxy(
    {},
    { get: (_, name) => (typeof name === 'string' ? new Placeholder(name) : undefined) },
  ) as unknown as P;
}

const nul = '\u0000';

/**
 * Text as both databases can hold it: PostgreSQL takes neither NUL nor half of a surrogate pair, and what one takes and
 * the other refuses would be found in production. Each becomes U+FFFD.
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

/** The form of a single value, lists aside, that both databases take. */
export function plainValue(value: Exclude<ParamValue, readonly unknown[]>): BoundValue {
  if (typeof value === 'string') return storableText(value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} cannot be stored`);
  return value;
}
