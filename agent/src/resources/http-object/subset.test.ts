import { pointer as pointerText } from '@muster/protocol/module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../provider/provider.ts';
import {
  differences,
  expectExact,
  isSame,
  merged,
  parseAnswer,
  partOf,
  pointerOf,
  valueAt,
  withValueAt,
} from './subset.ts';

// Few keys, so that generated values overlap.
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<Json[]>(null, true, 0, 1, '', 'a'),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'constructor', '0', '/~'), tie('value'), { maxKeys: 3 }),
  ),
}));
const pointer = fc.array(fc.constantFrom('a', 'b', '__proto__', '/~'), { maxLength: 3 });

test('finds no difference after the declared keys are set', () => {
  fc.assert(
    fc.property(value, value, (declared, found) => {
      expect(differences(declared, merged(declared, found))).toEqual([]);
    }),
  );
});

test('finds a difference if and only if setting the declared keys changes the value', () => {
  fc.assert(
    fc.property(value, value, (declared, found) => {
      expect(differences(declared, found).length === 0).toBe(isSame(merged(declared, found), found));
    }),
  );
});

test('finds the same differences in the declared part of a value as in the whole value', () => {
  fc.assert(
    fc.property(value, value, (declared, found) => {
      expect(differences(declared, partOf(declared, found))).toEqual(differences(declared, found));
    }),
  );
});

test('restores a value at a pointer, and the absence of a key', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'b'), value), pointer, value, (from, at, to) => {
      fc.pre(at.length > 0);
      expect(valueAt(withValueAt(from, at, to), at)).toEqual(to);
      expect(valueAt(withValueAt(from, at, undefined), at)).toBeUndefined();
      const former = valueAt(from, at);
      if (former !== undefined) expect(isSame(withValueAt(withValueAt(from, at, to), at, former), from)).toBe(true);
    }),
  );
});

test('parses each pointer that it writes', () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1 }), (keys) => {
      expect(pointerOf(pointerText(keys))).toEqual(keys);
    }),
  );
  expect(pointerOf('password')).toEqual(['password']);
});

test('treats keys such as `__proto__` like any other key', () => {
  const declared = JSON.parse('{"__proto__": {"a": 1}, "toString": 1}') as Json;
  expect(differences(declared, {}).map((each) => pointerText(each.pointer))).toEqual(['/__proto__', '/toString']);
  expect(differences(declared, parseAnswer('{"__proto__": {"a": 1}, "toString": 1, "b": 2}'))).toEqual([]);
  expect(valueAt({}, ['constructor'])).toBeUndefined();
  expect(valueAt([1], ['length'])).toBeUndefined();
  expect(({} as { a?: number }).a).toBeUndefined();
});

test.each([
  ['not json', 'the answer is not JSON'],
  ['{"a": 1', 'the answer is not JSON'],
  ['"\\', 'the answer is not JSON'],
  ['['.repeat(500_000), 'nested more than 100 levels deep'],
  [`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`, 'nested more than 100 levels deep'],
])('refuses the response %.20s', (text, message) => {
  expect(() => parseAnswer(text)).toThrow(message);
});

test('ignores brackets within strings', () => {
  const text = `"\\"${'['.repeat(200)}"`;
  expect(parseAnswer(`{"a": ${text}}`)).toEqual({ a: JSON.parse(text) });
});

test('refuses numbers that JavaScript cannot represent exactly, but only at declared keys', () => {
  const answer = parseAnswer('{"id": 12345678901234567890, "big": 1e999, "exact": 1.5, "a": 1, "a": 2}');
  expect(() => expectExact(partOf({ exact: 1, a: 1 }, answer))).not.toThrow();
  expect(partOf({ exact: 1, a: 1 }, answer)).toEqual({ exact: 1.5, a: 2 });
  expect(() => expectExact(partOf({ id: 1 }, answer))).toThrow('12345678901234567890');
  expect(() => expectExact(partOf({ big: {} }, answer))).toThrow('1e999');
});
