import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { deviationOf } from './drift-findings.ts';
import { type Drifted, movedIn, newIn, without } from './drift-news.ts';

const change = (field: string) => ({ field, from: 'a', to: 'b' });

describe('drifted fields', () => {
  test('names drifted resources and fields, and counts a result without fields as one field', () => {
    expect(
      movedIn(
        [
          resultOf({ identity: '/b', changes: [change('mode'), change('content')] }),
          resultOf({ type: 'script', identity: 's', action: 'run', changes: [] }),
          resultOf({ identity: '/c', status: 'failed', changes: [] }),
        ].map(deviationOf),
      ),
    ).toEqual({ 'path:/b': ['content', 'mode'], 'script:s': ['run'], 'path:/c': ['failed'] });
  });

  test('counts a newly drifted field as new', () => {
    const before = { a: ['mode'], b: ['content'] };
    expect(newIn(before, { a: ['mode'] })).toEqual([]);
    expect(newIn(before, { a: ['content', 'mode'], b: ['content'] })).toEqual(['a']);
    expect(newIn({}, before)).toEqual(['a', 'b']);
  });

  test('reports drift once while it lasts, and again after it was corrected', () => {
    const drifted: fc.Arbitrary<Drifted> = fc.dictionary(
      fc.constantFrom('a', 'b', 'c'),
      fc.uniqueArray(fc.constantFrom('mode', 'content'), { minLength: 1 }),
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(drifted, drifted, (before, now) => {
        expect(newIn(now, now)).toEqual([]);
        for (const key of newIn(before, now))
          expect(now[key]?.some((field) => !before[key]?.includes(field))).toBe(true);
        const right = new Set(Object.keys(now));
        expect(newIn(without(before, right), now).sort()).toEqual([...right].sort());
      }),
    );
  });
});
