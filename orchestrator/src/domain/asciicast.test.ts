import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TranscriptMark } from '../store/transcripts.ts';
import { asciicast } from './asciicast.ts';

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
const cast = async (pieces: Uint8Array[], marks: TranscriptMark[]) =>
  (await text(asciicast(1_800_000_000, each(pieces), each(marks))))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('asciicast', () => {
  test('a header, then what was shown with its times', async () => {
    const marks = [
      { at: 0, cols: 120, rows: 40 },
      { at: 10, bytes: 2 },
      { at: 1500, cols: 80, rows: 24 },
      { at: 1600, bytes: 3 },
    ];
    expect(await cast([Buffer.from('$ ls\n')], marks)).toEqual([
      { version: 2, width: 120, height: 40, timestamp: 1_800_000_000 },
      [0.01, 'o', '$ '],
      [1.5, 'r', '80x24'],
      [1.6, 'o', 'ls\n'],
    ]);
  });

  test('without marks everything comes at once', async () => {
    expect(await cast([Buffer.from('a'), Buffer.from('b')], [])).toEqual([
      expect.objectContaining({ width: 80, height: 24 }),
      [0, 'o', 'a'],
      [0, 'o', 'b'],
    ]);
  });

  test('nothing shown is a header alone', async () => {
    expect(await cast([], [{ at: 5, bytes: 9 }])).toHaveLength(1);
  });

  test('whatever the marks say, all of the text comes, in order, and time never goes back', async () => {
    const bytes = fc.string({ unit: 'grapheme' }).map((shown) => Buffer.from(shown.replaceAll('\uFEFF', '')));
    const mark = fc.oneof(
      fc.record({ at: fc.nat(), bytes: fc.nat(20) }),
      fc.record({ at: fc.nat(), cols: fc.nat(300), rows: fc.nat(300) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(bytes), fc.array(mark), async (pieces, marks) => {
        const [, ...events] = (await cast(pieces, marks)) as [number, string, string][];
        const shown = events.filter(([, kind]) => kind === 'o').map(([, , data]) => data);
        expect(shown.join('')).toBe(Buffer.concat(pieces).toString());
        const times = events.map(([at]) => at);
        expect(times).toEqual([...times].sort((a, b) => a - b));
      }),
    );
  });
});
