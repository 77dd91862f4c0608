import { expect, test } from 'vitest';
import { targets as planted } from './planted-targets.ts';
import { runFuzz } from './run.ts';

// Numbers of inputs, not seconds. A quiet machine finds each fault within seconds.
const inputs = 1_000;

test.skipIf(process.platform !== 'linux')(
  'finds planted faults of every sort, and reports no fault in correct code',
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
    expect(reasons['slow-pattern']).toContain('of the processor');
    expect(reasons.quadratic).toContain('of the processor');
    expect(reasons.allocation).toContain('allocated');
    expect(reasons.endless).toContain('of the processor');
    expect(reasons.prototype).toContain('TypeError: key');
  },
);
