import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { type Applied, createAppliedChanges, keyOf, type Reported, type SentSet } from './applied-state.ts';

const sent = {
  key: 'path:/etc/motd',
  module: 'motd',
  id: 'motd',
  type: 'file-unix',
  identity: '/etc/motd',
  depends_on: [],
};
const set = { resources: [sent], keep_modules: [] };
const row: Applied = {
  key: sent.key,
  module: 'motd',
  resource_id: 'motd',
  type: 'file-unix',
  identity: '/etc/motd',
  operation_id: 'one',
  since: 10,
  state: 'applied',
  reason: null,
  in_place: 1,
};

/** Returns the changes from an apply whose results fit in a single page. */
function changesOf(
  reported: readonly Reported[],
  before: readonly Applied[],
  given: SentSet = set,
  now = 20,
  ending?: 'cancelled',
) {
  const hasFailed = reported.some(([, { status }]) => status === 'failed');
  const changes = createAppliedChanges(given, 'two', now, ending ?? (hasFailed ? 'failed' : 'succeeded'));
  changes.take(reported, new Map(before.map((one) => [one.key, one])));
  return changes.changes();
}

describe('applied state', () => {
  test('treats a file and a directory at one path as the same resource', () => {
    expect(keyOf('file-unix', '/etc/x')).toBe(keyOf('directory-unix', '/etc/x'));
    expect(keyOf('script', 'deploy')).toBe('script:deploy');
    expect(keyOf('from-a-newer-release', 'x')).toBe('from-a-newer-release:x');
  });

  test('writes nothing after an apply that changed nothing', () => {
    expect(changesOf([[0, resultOf({ action: 'none', status: 'unchanged' })]], [row])).toMatchObject({
      put: [],
      removed: [],
      unchanged: true,
    });
  });

  test('keeps the start time of a state, and keeps a resource in place after a failed apply', () => {
    const again = changesOf([[0, resultOf({ action: 'update' })]], [row]).put;
    expect(again).toMatchObject([{ operation_id: 'two', since: 10, state: 'applied' }]);
    const failed = changesOf([[0, resultOf({ status: 'failed', message: 'disk full' })]], again).put;
    expect(failed).toMatchObject([{ since: 20, state: 'unapplied', reason: 'disk full', in_place: 1 }]);
  });

  test('marks a resource that is declared absent as applied once it is removed', () => {
    expect(changesOf([[0, resultOf({ action: 'remove' })]], []).put).toMatchObject([{ state: 'applied', in_place: 1 }]);
  });

  test('keeps a skipped resource under the module that put it in place', () => {
    const moved = { resources: [{ ...sent, module: 'other' }], keep_modules: [] };
    const skipped = resultOf({ action: 'none', status: 'skipped', message: null });
    expect(changesOf([[0, skipped]], [row], moved).put).toMatchObject([{ module: 'motd', state: 'unapplied' }]);
    expect(changesOf([[0, skipped]], [], moved).put).toMatchObject([{ module: 'other', in_place: 0 }]);
  });

  describe('resource whose condition does not hold', () => {
    const conditioned = { ...sent, only_if: { exists: '/opt' }, depends_on: ['path:/etc/a'] };
    const dependency = { ...sent, key: 'path:/etc/a', id: 'a', identity: '/etc/a' };
    const given = { resources: [dependency, conditioned], keep_modules: [] };
    const skipped = resultOf({ action: 'none', status: 'skipped', message: 'no /opt' });
    const reportedOf = (of: Partial<Parameters<typeof resultOf>[0]>): Reported[] => [
      [0, resultOf({ identity: '/etc/a', ...of })],
      [1, skipped],
    ];
    const keysPut = ({ put }: ReturnType<typeof changesOf>) => put.map(({ key, state }) => [key, state]);

    test('drops a resource that was never in place if its condition is false', () => {
      expect(keysPut(changesOf(reportedOf({}), [], given))).toEqual([['path:/etc/a', 'applied']]);
      const failedBefore: Applied = { ...row, state: 'unapplied', in_place: 0 };
      expect(changesOf(reportedOf({}), [failedBefore], given).removed).toEqual([sent.key]);
    });

    test('keeps a resource in place as applied if its condition is false', () => {
      const unchanged = changesOf(reportedOf({}), [row], given);
      expect([keysPut(unchanged), unchanged.removed]).toEqual([[['path:/etc/a', 'applied']], []]);
      const failedBefore: Applied = { ...row, state: 'unapplied', reason: 'no' };
      expect(changesOf(reportedOf({}), [failedBefore], given).put).toContainEqual(
        expect.objectContaining({ key: sent.key, state: 'applied', reason: null, in_place: 1 }),
      );
    });

    test('marks a skipped resource as unapplied if a dependency failed or the apply was canceled', () => {
      for (const changes of [
        changesOf(reportedOf({ status: 'failed' }), [], given),
        changesOf(reportedOf({}), [], given, 20, 'cancelled'),
      ])
        expect(keysPut(changes)).toContainEqual([sent.key, 'unapplied']);
    });
  });

  test('limits the total length of reasons per apply', () => {
    const resources = Array.from({ length: 2000 }, (_, i) => ({ ...sent, key: `path:/${i}`, identity: `/${i}` }));
    const reported = resources.map((_, i): Reported => [i, resultOf({ status: 'failed', message: 'x'.repeat(8000) })]);
    const { put } = changesOf(reported, [], { resources, keep_modules: [] });
    expect(put).toHaveLength(2000);
    expect(put.reduce((sum, { reason }) => sum + (reason?.length ?? 0), 0)).toBeLessThan(1024 * 1024 + 2000 * 10);
    expect(put.at(-1)?.reason).toBe('failed');
  });

  test('computes the same result regardless of how results are split into pages', () => {
    const resources = ['/a', '/b', '/c'].map((path) => ({ ...sent, key: `path:${path}`, identity: path }));
    const result = fc.constantFrom(
      resultOf({ action: 'none', status: 'unchanged' }),
      resultOf({ status: 'failed' }),
      resultOf({ status: 'skipped' }),
      resultOf({ action: 'remove', identity: '/old' }),
      resultOf({ action: 'remove', identity: '/old', status: 'failed' }),
    );
    const before = [row, { ...row, key: 'path:/old', identity: '/old' }, { ...row, key: 'path:/a', identity: '/a' }];
    const rows = new Map(before.map((one) => [one.key, one]));
    fc.assert(
      fc.property(fc.array(result, { maxLength: 6 }), fc.nat(6), (results, cut) => {
        const reported = results.map((one, i): Reported => [i, one]);
        const whole = createAppliedChanges({ resources, keep_modules: [] }, 'two', 20, 'succeeded');
        whole.take(reported, rows);
        const parts = createAppliedChanges({ resources, keep_modules: [] }, 'two', 20, 'succeeded');
        for (const page of [reported.slice(0, cut), reported.slice(cut)]) {
          const keys = new Set(parts.keysOf(page));
          parts.take(page, new Map([...rows].filter(([key]) => keys.has(key))));
        }
        expect(parts.changes()).toEqual(whole.changes());
      }),
    );
  });
});
