import { expect, test } from 'vitest';
import { Meter } from '../meter.ts';
import { firstIndex, lastIndex, splitText } from './search.ts';

const metered = (): Meter => {
  const meter = new Meter();
  meter.begin();
  return meter;
};

/** Returns two-letter text with a prime period, in which prefixes of the search string occur often. */
const periodic = (length: number, period: number): string =>
  Array.from({ length }, (_, index) => (((index % period) * 7) % 5 < 3 ? 'a' : 'b')).join('');

test("finds the same positions as the engine's own search", () => {
  for (const period of [1, 2, 3, 7, 31, 97]) {
    const text = `${periodic(30_000, period)}c${periodic(10_000, period)}`;
    for (const [start, end] of [
      [0, 40],
      [13, 113],
      [29_960, 30_060],
    ] as const) {
      for (const part of [text.slice(start, end), `${text.slice(start, end)}d`]) {
        expect(firstIndex(metered(), text, part)).toBe(text.indexOf(part));
        expect(firstIndex(metered(), text, part, 20_001)).toBe(text.indexOf(part, 20_001));
        expect(lastIndex(metered(), text, part)).toBe(text.lastIndexOf(part));
        expect(lastIndex(metered(), text, part, 20_001)).toBe(text.lastIndexOf(part, 20_001));
        expect(splitText(metered(), text, part)).toEqual(text.split(part));
      }
    }
  }
});

test('searches a long text for a part that matches everywhere except at its end', () => {
  // The engine's own search would take minutes.
  const [text, part] = ['a'.repeat(900_000), `${'a'.repeat(450_000)}b`];
  expect(firstIndex(metered(), text, part)).toBe(-1);
  expect(lastIndex(metered(), text, part)).toBe(-1);
  expect(splitText(metered(), text, part)).toEqual([text]);
});
