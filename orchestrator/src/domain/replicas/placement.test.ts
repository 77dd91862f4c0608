import fc from 'fast-check';
import { expect, test } from 'vitest';
import { preferredHolder } from './placement.ts';

const incarnations = fc.uniqueArray(fc.stringMatching(/^[0-9a-f]{8}$/), { minLength: 1, maxLength: 12 });
const lease = fc.stringMatching(/^[a-z]{1,8}(\/[0-9]{1,2})?$/);

test('assigns each lease to exactly one live process, regardless of the order of the processes', () => {
  fc.assert(
    fc.property(lease, incarnations, fc.nat(), (name, live, turn) => {
      const holder = preferredHolder(name, live);
      expect(live).toContain(holder);
      const at = turn % live.length;
      expect(preferredHolder(name, [...live.slice(at), ...live.slice(0, at)])).toBe(holder);
    }),
  );
  expect(preferredHolder('work', [])).toBeNull();
});

test('moves only the leases of a process that leaves, and moves leases only to a process that joins', () => {
  fc.assert(
    fc.property(lease, incarnations, fc.nat(), (name, live, which) => {
      fc.pre(live.length > 1);
      const other = live[which % live.length] as string;
      const rest = live.filter((one) => one !== other);
      const withOther = preferredHolder(name, live);
      const without = preferredHolder(name, rest);
      expect(withOther === without || withOther === other).toBe(true);
    }),
  );
});

test('spreads leases evenly', () => {
  const live = ['a', 'b', 'c', 'd'];
  const held = new Map<string, number>();
  for (let each = 0; each < 4_000; each++) {
    const holder = preferredHolder(`lease ${each}`, live) as string;
    held.set(holder, (held.get(holder) ?? 0) + 1);
  }
  for (const one of live) expect(Math.abs((held.get(one) ?? 0) - 1_000)).toBeLessThan(150);
});
