import { describe, expect, test } from 'vitest';
import { byUrgency, isOff, standingsOf } from './standings.ts';

const nothing = { drifted: [], failedChecks: [], failedApplies: [], notApplied: [], outdated: [] };
const agent = (name: string) => ({ node_id: `id of ${name}`, name });

describe('agent standings', () => {
  test('merges all findings for an agent, worst reason first', () => {
    const [standing] = standingsOf({
      drifted: [{ ...agent('a'), is_accepted: 0 }],
      failedChecks: [agent('a')],
      failedApplies: [agent('a')],
      notApplied: [
        { ...agent('a'), state: 'pending_removal', count: 2 },
        { ...agent('a'), state: 'unapplied', count: 3 },
      ],
      outdated: [{ ...agent('a'), count: 2 }],
    }).values();
    expect(standing).toEqual({
      ...agent('a'),
      reasons: ['apply_failed', 'drifted', 'drift_failed', 'unapplied', 'pending_removals'],
      drifted: true,
      unapplied: 3,
      pending_removals: 2,
      outdated: 2,
    });
  });

  test('counts drift as a reason unless all of it is accepted', () => {
    const drifted = [
      { ...agent('a'), is_accepted: 1 },
      { ...agent('b'), is_accepted: 1 },
      { ...agent('b'), is_accepted: 0 },
    ];
    const [a, b] = standingsOf({ ...nothing, drifted }).values();
    expect(a).toMatchObject({ reasons: [], drifted: true });
    expect(b).toMatchObject({ reasons: ['drifted'], drifted: true });
    expect([a, b].map((each) => each && isOff(each))).toEqual([false, true]);
  });
});

test('does not count an outdated module as a reason', () => {
  const [standing] = standingsOf({ ...nothing, outdated: [{ ...agent('a'), count: 1 }] }).values();
  expect(standing).toMatchObject({ reasons: [], drifted: false, outdated: 1 });
  expect(standing && isOff(standing)).toBe(false);
});

test('orders agents by their worst reason, then by name', () => {
  const found = standingsOf({
    drifted: ['m', 'c', 'accepted'].map((name) => ({ ...agent(name), is_accepted: name === 'accepted' ? 1 : 0 })),
    failedChecks: [agent('z')],
    failedApplies: [agent('y'), agent('m')],
    notApplied: ['z', 'c'].flatMap((name) =>
      ['unapplied', 'pending_removal'].map((state) => ({ ...agent(name), state, count: 1 })),
    ),
    outdated: [agent('old'), agent('z')].map((each) => ({ ...each, count: 1 })),
  });
  expect(byUrgency(found.values()).map(({ name }) => name)).toEqual(['m', 'y', 'c', 'z', 'old', 'accepted']);
});
