import type { ResourceResult } from '@muster/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resultOf } from '../../test/domain.ts';
import { type Believed, believe, keyOf } from './believed-state.ts';

/** The belief after a change, as the database would hold it. */
function after(before: readonly Believed[], change: ReturnType<typeof believe>): Believed[] {
  const rows = new Map(before.map((belief) => [belief.key, belief]));
  for (const key of change.forget) rows.delete(key);
  for (const belief of change.put) rows.set(belief.key, belief);
  return [...rows.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

const result: fc.Arbitrary<ResourceResult> = fc
  .record({
    identity: fc.constantFrom('/a', '/b', '/c', '/d'),
    type: fc.constantFrom('file-unix', 'directory-unix'),
    outcome: fc.constantFrom(
      { action: 'none', status: 'unchanged' } as const,
      { action: 'create', status: 'changed' } as const,
      { action: 'update', status: 'failed' } as const,
      { action: 'none', status: 'skipped' } as const,
      { action: 'remove', status: 'changed' } as const,
      { action: 'remove', status: 'failed' } as const,
    ),
  })
  .map(({ identity, type, outcome }) => resultOf({ identity, type, id: null, ...outcome }));

const apply = fc.uniqueArray(result, { selector: ({ identity }) => identity, maxLength: 4 });

describe('what is believed of a machine', () => {
  it('knows a file and a directory at one path as the same thing', () => {
    expect(keyOf('file-unix', '/etc/x')).toBe(keyOf('directory-unix', '/etc/x'));
    expect(keyOf('script', 'deploy')).toBe('script:deploy');
    expect(keyOf('from-a-newer-release', 'x')).toBe('from-a-newer-release:x');
  });

  it('says of each resource of the apply what became of it', () => {
    fc.assert(
      fc.property(apply, apply, (first, second) => {
        const before = after([], believe([], first, 'one', 1));
        const now = after(before, believe(before, second, 'two', 2));
        for (const { identity, type, action, status } of second) {
          const belief = now.find(({ key }) => key === keyOf(type, identity));
          if (action === 'remove' && status === 'changed') expect(belief).toBeUndefined();
          else if (action === 'remove') expect(belief?.state).toBe('pending_removal');
          else if (status === 'failed' || status === 'skipped') expect(belief?.state).toBe('unapplied');
          else expect(belief?.state).toBe('applied');
        }
        // What the apply did not speak of stays as it was.
        const spoken = new Set(second.map(({ type, identity }) => keyOf(type, identity)));
        for (const belief of before) if (!spoken.has(belief.key)) expect(now).toContainEqual(belief);
      }),
    );
  });

  it('changes nothing after an apply that changed nothing', () => {
    fc.assert(
      fc.property(apply, (results) => {
        const first = results.filter(({ action }) => action !== 'remove');
        const settled = first.map((entry) => ({ ...entry, action: 'none' as const, status: 'unchanged' as const }));
        const before = after([], believe([], settled, 'one', 1));
        expect(believe(before, settled, 'two', 2)).toEqual({ put: [], forget: [] });
      }),
    );
  });

  it('remembers since when', () => {
    const first = believe([], [resultOf()], 'one', 10).put;
    const again = believe(first, [resultOf({ action: 'update' })], 'two', 20).put;
    expect(again).toMatchObject([{ operation_id: 'two', since: 10, state: 'applied' }]);
    const failed = believe(again, [resultOf({ status: 'failed', message: 'disk full' })], 'three', 30).put;
    expect(failed).toMatchObject([{ since: 30, state: 'unapplied', reason: 'disk full' }]);
  });
});
