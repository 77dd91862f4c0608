import { JsonPieces, type JsonText } from './handlers.ts';

/** Bodies whose long lists are written in chunks of JSON text while the items are being read. */

type Lists = AsyncIterable<readonly JsonText<unknown>[]>;
type Entries = AsyncIterable<readonly (readonly [name: string, value: JsonText<unknown>])[]>;

/** Returns the body of an object. Async iterables in its fields become lists whose items are JSON text. */
export const withLists = <T>(fields: Readonly<Record<string, unknown>>): JsonPieces<T> =>
  new JsonPieces(objectPieces(Object.entries(fields), '[', ']', (part) => (part as readonly string[]).join()));

/** Returns the body of an object. Async iterables in its fields become objects whose values are JSON text. */
export const withEntries = <T>(fields: Readonly<Record<string, unknown>>): JsonPieces<T> =>
  new JsonPieces(
    objectPieces(Object.entries(fields), '{', '}', (part) =>
      (part as readonly (readonly [string, string])[])
        .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
        .join(),
    ),
  );

async function* objectPieces(
  fields: readonly (readonly [name: string, value: unknown])[],
  opens: string,
  closes: string,
  textOf: (part: readonly unknown[]) => string,
): AsyncGenerator<string> {
  let before = '{';
  for (const [name, value] of fields) {
    if (value === undefined) continue;
    const start = `${before}${JSON.stringify(name)}:`;
    before = ',';
    if (!isInParts(value)) {
      yield start + JSON.stringify(value);
      continue;
    }
    yield start + opens;
    let between = '';
    for await (const part of value) {
      if (part.length === 0) continue;
      yield between + textOf(part);
      between = ',';
    }
    yield closes;
  }
  yield '}';
}

const isInParts = (value: unknown): value is Lists | Entries =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
