import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { type Drifted, driftedFields, newlyDrifted, without } from './drift-effects.ts';
import { deviationOf } from './drift-findings.ts';

const change = (field: string) => ({ field, from: 'a', to: 'b' });

describe('drifted fields', () => {
  test('returns drifted resources and fields, and counts a result without fields as one field', () => {
    expect(
      driftedFields(
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
    expect(newlyDrifted(before, { a: ['mode'] })).toEqual([]);
    expect(newlyDrifted(before, { a: ['content', 'mode'], b: ['content'] })).toEqual(['a']);
    expect(newlyDrifted({}, before)).toEqual(['a', 'b']);
  });

  test('reports drift once while it lasts, and again if it recurs after a correction', () => {
    const drifted: fc.Arbitrary<Drifted> = fc.dictionary(
      fc.constantFrom('a', 'b', 'c'),
      fc.uniqueArray(fc.constantFrom('mode', 'content'), { minLength: 1 }),
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(drifted, drifted, (before, now) => {
        expect(newlyDrifted(now, now)).toEqual([]);
        for (const key of newlyDrifted(before, now))
          expect(now[key]?.some((field) => !before[key]?.includes(field))).toBe(true);
        const expected = new Set(Object.keys(now));
        expect(newlyDrifted(without(before, expected), now).sort()).toEqual([...expected].sort());
      }),
    );
  });
});
