import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Chunk, chunkAt, chunkLength, chunksBefore, chunksOf, tableOf, withChunk } from './sample-chunks.ts';

test('creates chunks that contain the given time and never overlap, for any chunk length', () => {
  const length = fc.integer({ min: 600, max: 1_000_000 });
  const time = fc.integer({ min: 0, max: 4_000_000_000 });
  const near = fc.integer({ min: 1_800_000_000, max: 1_800_100_000 });
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.oneof(near, time), length), { maxLength: 40 }), (steps) => {
      let chunks: Chunk[] = [];
      for (const [at, secs] of steps) {
        const chunk = chunkAt(chunks, at, secs);
        expect(chunk.start <= at && at < chunk.end).toBe(true);
        expect(chunk.end - chunk.start).toBeLessThanOrEqual(1_000_000);
        if (!chunks.includes(chunk)) chunks = withChunk(chunks, chunk);
        expect(chunkAt(chunks, at, 600)).toBe(chunk);
        for (let next = 1; next < chunks.length; next++)
          expect(chunks[next - 1]!.end).toBeLessThanOrEqual(chunks[next]!.start);
      }
      expect(chunksOf(chunks.map(tableOf).reverse())).toEqual(chunks);
    }),
  );
});

test('derives a chunk’s length from the retention period', () => {
  expect(chunkLength(86_400)).toBe(3600);
  expect(chunkLength(1)).toBe(600);
  expect(chunkLength(30 * 86_400)).toBe(30 * 3600);
});

test('finds only chunks that end before a given time, and ignores other tables', () => {
  const chunks = [
    { start: 0, end: 10 },
    { start: 10, end: 20 },
  ];
  expect(chunksBefore(chunks, 10)).toEqual([{ start: 0, end: 10 }]);
  expect(chunksBefore(chunks, 9)).toEqual([]);
  expect(chunksOf(['samples', 'samples_1_2', 'samples_x_2', 'other', 'samples_1_2_3'])).toEqual([{ start: 1, end: 2 }]);
});
