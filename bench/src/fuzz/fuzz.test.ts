import { expect, test } from 'vitest';
import { sampled } from '../../../lib/test/sampled.ts';
import { targets as planted } from './planted-targets.ts';
import { runFuzz } from './run.ts';

// Limits the number of inputs instead of the time, because the machine may be busy.
const inputs = 1_000;

/** Number of planted bugs that `npm test` looks for, selected at random. `npm run soak -- kill-steps` looks for all. */
const bugs = 5;
/** Expected part of the failure reason, by target. Targets that are not listed may fail with any error. */
const reasonParts: Readonly<Record<string, string>> = {
  'slow-pattern': 'of CPU time',
  quadratic: 'of CPU time',
  allocation: 'allocated',
  endless: 'of CPU time',
  prototype: 'TypeError: key',
};

test.skipIf(process.platform !== 'linux')(
  'finds planted bugs of all kinds, and reports none in correct code',
  async () => {
    const { none: _, ...faulty } = planted;
    const names = sampled(Object.keys(faulty), bugs);
    const found = await runFuzz({
      module: 'planted-targets',
      names: ['none', ...names],
      seed: 1,
      inputs,
      endlessSecs: 2,
    });
    const reasons = Object.fromEntries(found.map(({ name, reason }) => [name, reason]));
    expect(Object.keys(reasons).toSorted()).toEqual(names.toSorted());
    for (const name of names) expect(reasons[name], name).toContain(reasonParts[name] ?? '');
  },
);
