import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withEntries, withLists } from './json-pieces.ts';

async function* inParts<T>(parts: readonly T[]): AsyncGenerator<T> {
  yield* parts;
}
const parsed = async ({ pieces }: { pieces: AsyncIterable<string> }): Promise<unknown> => {
  let text = '';
  for await (const piece of pieces) text += piece;
  return JSON.parse(text);
};

test('serializes an object with lists as JSON.stringify does, however the lists are split', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.jsonValue())), fc.string(), async (parts, text) => {
      const list = inParts(parts.map((part) => part.map((item) => JSON.stringify(item))));
      expect(JSON.stringify(await parsed(withLists({ text, list, none: null })))).toBe(
        JSON.stringify({ text, list: parts.flat(), none: null }),
      );
    }),
  );
});

test('serializes an object with entries as JSON.stringify does', async () => {
  const entries = fc.uniqueArray(fc.tuple(fc.string(), fc.jsonValue()), { selector: ([name]) => name });
  await fc.assert(
    fc.asyncProperty(entries, fc.nat(5), async (all, cut) => {
      const parts = [all.slice(0, cut), [], all.slice(cut)];
      const output = inParts(parts.map((part) => part.map(([name, value]) => [name, JSON.stringify(value)] as const)));
      const expected = JSON.parse(
        `{${all.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)}}`,
      );
      expect(await parsed(withEntries({ output }))).toEqual({ output: expected });
    }),
  );
});

test('omits undefined fields of an object', async () => {
  expect(await parsed(withLists({ gone: undefined, there: 1 }))).toEqual({ there: 1 });
});
