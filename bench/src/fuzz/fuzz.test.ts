import { expect, test } from 'vitest';
import { targets as planted } from './planted-targets.ts';
import { runFuzz } from './run.ts';

// Limits the number of inputs instead of the time, because the machine may be busy.
const inputs = 1_000;

test.skipIf(process.platform !== 'linux')(
  'finds planted bugs of all kinds, and reports none in correct code',
  { timeout: 600_000 },
  async () => {
    const found = await runFuzz({
      module: 'planted-targets',
      names: Object.keys(planted),
      seed: 1,
      inputs,
      endlessSecs: 2,
    });
    const reasons = Object.fromEntries(found.map(({ name, reason }) => [name, reason]));
    expect(Object.keys(reasons).toSorted()).toEqual(
      Object.keys(planted)
        .filter((name) => name !== 'none')
        .toSorted(),
    );
    expect(reasons['slow-pattern']).toContain('of CPU time');
    expect(reasons.quadratic).toContain('of CPU time');
    expect(reasons.allocation).toContain('allocated');
    expect(reasons.endless).toContain('of CPU time');
    expect(reasons.prototype).toContain('TypeError: key');
  },
);
