import { describe, expect, test } from 'vitest';
import { eachOf } from './each-of.ts';

describe('eachOf', () => {
  test('continues after failures, returns them in order, and limits the parallel calls', async () => {
    let running = 0;
    let maxRunning = 0;
    const counts: number[] = [];
    const items = Array.from({ length: 20 }, (_, index) => index);
    const failed = await eachOf(
      items,
      3,
      async (item) => {
        maxRunning = Math.max(maxRunning, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        if (item % 7 === 3) throw new Error(`no ${item}`);
      },
      (count) => counts.push(count),
    );
    expect(failed.map(({ item, error }) => [item, (error as Error).message])).toEqual([
      [3, 'no 3'],
      [10, 'no 10'],
      [17, 'no 17'],
    ]);
    expect(maxRunning).toBe(3);
    expect(counts).toEqual(items.map((item) => item + 1));
  });
});
