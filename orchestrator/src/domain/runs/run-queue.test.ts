import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RunQueue } from './run-queue.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('combines the outcomes of other processes into one pass for each run', async () => {
  const passes: string[] = [];
  const log = { error: () => {} } as unknown as ConstructorParameters<typeof RunQueue>[1];
  const queue = new RunQueue(async (runId) => void passes.push(runId), log);
  for (let passed = 0; passed < 400; passed += 5) {
    for (const run of ['a', 'b']) queue.advanceLater(run, 200);
    await vi.advanceTimersByTimeAsync(5);
  }
  expect(passes).toEqual(['a', 'b', 'a', 'b']);
  queue.advanceLater('a', 200);
  await queue.stop();
  await vi.advanceTimersByTimeAsync(200);
  expect(passes).toHaveLength(4);
});
