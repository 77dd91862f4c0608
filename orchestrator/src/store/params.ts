/**
 * Query parameters. While a query is built, placeholders stand for the values. When the compiled statement runs, the
 * values replace the placeholders.
 */

export type ParamValue = string | number | boolean | null | Uint8Array | readonly string[] | readonly number[];

/** A value in a form that the database drivers accept. */
export type BoundValue = string | number | null | Uint8Array | readonly string[] | readonly number[];

export class Placeholder {
  readonly param: string;
  constructor(param: string) {
    this.param = param;
  }
}

/** A parameter whose value is a list. The dialect decides how to pass it to the database. */
export class ListPlaceholder extends Placeholder {
  readonly elements: 'text' | 'integer';
  constructor(param: string, elements: 'text' | 'integer') {
    super(param);
    this.elements = elements;
  }
}

/** A `?` or `$n` in a compiled statement: either a constant from the query or a named parameter. */
export type Slot = { readonly value: BoundValue } | { readonly param: string; readonly list: boolean };

/**
 * Creates an object that returns a placeholder for every property. The placeholder has the type of the property's
 * value.
 */
export function placeholders<P>(): P {
  return new Proxy(
    {},
    { get: (_, name) => (typeof name === 'string' ? new Placeholder(name) : undefined) },
  ) as unknown as P;
}

const nul = '\u0000';

/**
 * Replaces NUL and lone surrogates, which PostgreSQL refuses, with U+FFFD. As a result, both databases store the same
 * text.
 */
export function storableText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes(nul) ? wellFormed.replaceAll(nul, '\ufffd') : wellFormed;
}

/** Serializes rows for `Dialect.rowsOf` as a JSON array. Booleans become 1 and 0. */
export function jsonRows(rows: readonly Readonly<Record<string, string | number | boolean | null>>[]): string {
  return JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'string' ? storableText(value) : typeof value === 'boolean' ? Number(value) : value,
  );
}

/** Converts a single value to the form that both database drivers accept. */
export function plainValue(value: Exclude<ParamValue, readonly unknown[]>): BoundValue {
  if (typeof value === 'string') return storableText(value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} cannot be stored`);
  return value;
}
