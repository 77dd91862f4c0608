import { expect, test } from 'vitest';
import { whileSuspended } from '../../converge/test/suspended.ts';
import { matching } from './bounded-match.ts';

test('reports which strings match a pattern', () => {
  expect(matching('^key=', ['key=1', 'a key=2', 'key=3'])).toEqual([true, false, true]);
  expect(matching('^key=', [])).toEqual([]);
  expect(() => matching('(', [])).toThrow('not a regular expression');
});

test('aborts a pattern that backtracks endlessly, and then matches another pattern', () => {
  const before = process.threadCpuUsage();
  expect(() => matching('^(a+)+$', ['b', `${'a'.repeat(40)}b`], 50)).toThrow(
    'its `match` took longer than 50 ms of CPU time and was stopped at line 2',
  );
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(500);
  expect(matching('a', ['a'], 50)).toEqual([true]);
});

test('does not count time during which the process was suspended', async () => {
  const imports = { matching: new URL('./bounded-match.ts', import.meta.url) };
  const work = `matching('^(key|name)\\\\s*=', Array(10_000).fill('a line like many others'), 50);`;
  expect(await whileSuspended(imports, work, 150)).toBeNull();
});
