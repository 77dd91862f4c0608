import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { bar, glyphsFor, type Point, sparkline } from './sparkline.ts';

const unicode = glyphsFor({});
const plain = glyphsFor({}, true);

describe('sparkline and bar', () => {
  test('draws the lowest and the highest value at the edges of the scale, and distinguishes null from gaps', () => {
    expect(sparkline([0, 25, 50, 75, 100], { min: 0, max: 100 }, unicode)).toBe('▁▃▅▆█');
    expect(sparkline([0, null, undefined, 100], { min: 0, max: 100 }, unicode)).toBe('▁– █');
    expect(sparkline([0, null, undefined, 100], { min: 0, max: 100 }, plain)).toBe('_? #');
    expect(sparkline([7, 7], { min: 7, max: 7 }, unicode)).toBe('▁▁');
  });

  const point = fc.oneof(fc.double({ noNaN: true, min: -1e15, max: 1e15 }), fc.constant(null), fc.constant(undefined));
  test('draws one column per point, and never draws a higher number at a lower level', () => {
    fc.assert(
      fc.property(fc.array<Point>(point), fc.constantFrom(unicode, plain), (points, glyphs) => {
        const numbers = points.filter((each) => typeof each === 'number');
        const min = Math.min(...numbers, 0);
        const max = Math.max(...numbers, 0);
        const drawn = [...sparkline(points, { min, max }, glyphs)];
        expect(drawn).toHaveLength(points.length);
        expect(stringWidth(drawn.join(''))).toBe(points.length);
        const level = (at: number) => glyphs.levels.indexOf(drawn[at] ?? '');
        for (const [at, each] of points.entries()) {
          if (typeof each !== 'number') {
            expect(drawn[at]).toBe(each === null ? glyphs.none : ' ');
            continue;
          }
          expect(level(at)).toBeGreaterThanOrEqual(0);
          if (max > min && each === max) expect(level(at)).toBe(glyphs.levels.length - 1);
          if (each === min) expect(level(at)).toBe(0);
          for (const [before, other] of points.slice(0, at).entries())
            if (typeof other === 'number' && other < each) expect(level(before)).toBeLessThanOrEqual(level(at));
        }
      }),
    );
  });
});

test('draws a bar of the given width that is full only for a full share', () => {
  expect(bar(0.5, 10, unicode)).toBe('█████░░░░░');
  expect(bar(1.7, 4, plain)).toBe('####');
  fc.assert(
    fc.property(fc.double({ min: -2, max: 2, noNaN: true }), fc.integer({ min: 0, max: 60 }), (share, width) => {
      expect(stringWidth(bar(share, width, unicode))).toBe(width);
    }),
  );
});

test.each([
  [{}, unicode],
  [{ LANG: 'de_DE.UTF-8' }, unicode],
  [{ LANG: 'C', LC_ALL: 'C.utf8' }, unicode],
  [{ LANG: 'C' }, plain],
  [{ LANG: 'de_DE.UTF-8', LC_ALL: 'POSIX' }, plain],
  [{ TERM: 'dumb' }, plain],
  [{ TERM: 'linux', LANG: 'de_DE.UTF-8' }, plain],
])('selects glyphs that the terminal supports: %o', (env, glyphs) => {
  expect(glyphsFor(env)).toEqual(glyphs);
});
