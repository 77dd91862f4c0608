import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseQuery } from './query.ts';

describe('parseQuery', () => {
  test('parses the output of URLSearchParams', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })), (entries) => {
        const text = new URLSearchParams(entries).toString();
        const { values, faults } = parseQuery(text);
        expect(faults).toEqual([]);
        expect(Object.entries(values).sort()).toEqual([...new URLSearchParams(text)].sort());
      }),
    );
  });

  test('parses spaces, empty parts, and names without a value', () => {
    expect({ ...parseQuery('filter=a%3Db+c%20d&&q&limit=').values }).toEqual({ filter: 'a=b c d', q: '', limit: '' });
  });

  test('reports a repeated parameter, even if its encodings differ', () => {
    expect(parseQuery('limit=1&%6Cimit=2').faults).toEqual([
      { path: '/limit', message: 'the parameter "limit" is repeated' },
    ]);
  });

  test('reports invalid percent escapes', () => {
    for (const text of ['q=%zz', 'q=%', 'q=%ff', 'q=%c3%28']) expect(parseQuery(text).faults[0]?.path, text).toBe('/q');
    expect(parseQuery('%zz=1').faults).toHaveLength(1);
  });

  test('treats property names of Object.prototype as ordinary parameter names', () => {
    const { values, faults } = parseQuery('__proto__=1&toString=2&constructor=3');
    expect(faults).toEqual([]);
    expect(Object.keys(values)).toEqual(['__proto__', 'toString', 'constructor']);
  });
});
