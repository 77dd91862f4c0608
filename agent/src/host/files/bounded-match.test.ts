import { expect, test } from 'vitest';
import { whileStandingStill } from '../../converge/test/standing-still.ts';
import { matching } from './bounded-match.ts';

test('says which texts match', () => {
  expect(matching('^key=', ['key=1', 'a key=2', 'key=3'])).toEqual([true, false, true]);
  expect(matching('^key=', [])).toEqual([]);
  expect(() => matching('(', [])).toThrow('no regular expression');
});

test('cuts off one that backtracks for ever, and takes the next as ever', () => {
  const before = process.threadCpuUsage();
  expect(() => matching('^(a+)+$', ['b', `${'a'.repeat(40)}b`], 50)).toThrow(
    'its `match` took longer than 50 ms of the processor and was stopped at line 2',
  );
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(500);
  expect(matching('a', ['a'], 50)).toEqual([true]);
});

test('a machine that is busy, or stands still, is not the fault of the pattern', async () => {
  const imports = { matching: new URL('./bounded-match.ts', import.meta.url) };
  const work = `matching('^(key|name)\\\\s*=', Array(10_000).fill('a line like many others'), 50);`;
  expect(await whileStandingStill(imports, work, 150)).toBeNull();
});
