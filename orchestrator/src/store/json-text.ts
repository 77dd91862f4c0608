/** JSON in a text column, with the type of its content. */
export type JsonText<T> = string & { readonly jsonOf?: T };

/**
 * Serializes a value for a JSON column. The value must be plain data.
 * @throws TypeError for `undefined`, which is a bug
 */
export function toJson<T>(value: T): JsonText<T> {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError('Only plain data can be stored as JSON');
  return text as JsonText<T>;
}

/** Parses the text of a JSON column. Only this program writes JSON columns, so their shape is trusted. */
export function fromJson<T>(text: JsonText<T>): T;
export function fromJson<T>(text: JsonText<T> | null): T | null;
export function fromJson<T>(text: JsonText<T> | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
