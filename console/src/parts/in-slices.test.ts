import { expect, test } from 'vitest';
import { runInSlices } from './in-slices.ts';

/** Simulates work on a fake clock. Every step takes 3 ms. */
function work(steps: number) {
  let ms = 0;
  let next: (() => void) | null = null;
  let done = 0;
  function* stepsOf(): Generator<undefined, string> {
    for (let step = 0; step < steps; step++) {
      ms += 3;
      done++;
      yield;
    }
    return 'result';
  }
  const clock = {
    now: () => ms,
    later: (act: () => void) => {
      next = act;
      return () => {
        next = null;
      };
    },
  };
  return {
    clock,
    steps: stepsOf(),
    stepsDone: () => done,
    /** Runs the next slice. Returns whether there was a slice to run. */
    runSlice(): boolean {
      const act = next;
      next = null;
      act?.();
      return act !== null;
    },
  };
}

test('stops a slice after 8 ms, and continues later', () => {
  const { clock, steps, stepsDone, runSlice } = work(7);
  const results: string[] = [];
  runInSlices(steps, (result) => results.push(result), clock);
  expect(stepsDone()).toBe(0);
  runSlice();
  expect(stepsDone()).toBe(3);
  runSlice();
  expect([stepsDone(), results]).toEqual([6, []]);
  runSlice();
  expect([stepsDone(), results]).toEqual([7, ['result']]);
  expect(runSlice()).toBe(false);
});

test('does nothing after it was canceled', () => {
  const { clock, steps, stepsDone, runSlice } = work(7);
  const cancel = runInSlices(steps, () => expect.unreachable(), clock);
  runSlice();
  cancel();
  expect(runSlice()).toBe(false);
  expect(stepsDone()).toBe(3);
});
