import { expect, test } from 'vitest';
import type { Entry } from './history.ts';
import { absencesAfterKills, distributionOf, refusalsDuring, requestsAfterKills, runsAcrossKills } from './times.ts';

const kill: Entry = { type: 'fault', at: 1_000, until: 3_000, kind: 'kill-replica', subject: 'replica 0' };
const link = (at: number, node: string, linked: boolean): Entry => ({ type: 'link', at, node, linked });
const request = (at: number, call: number, outcome: object, replica = 'balancer'): Entry[] => [
  { type: 'invoked', at, call, client: 'c', replica, request: { kind: 'read', key: 'k' } },
  { at: at + 10, call, ...outcome } as Entry,
];

test('returns quantiles', () => {
  expect(distributionOf([5, 1, 2, 3, 4])).toEqual({ count: 5, p50: 3, p90: 5, max: 5 });
  expect(distributionOf([])).toEqual({ count: 0, p50: 0, p90: 0, max: 0 });
});

test('measures how long agents have no link after a replica was killed', () => {
  const history = [kill, link(500, 'c', false), link(900, 'c', true), link(1_020, 'a', false), link(1_500, 'a', true)];
  expect(absencesAfterKills([...history, link(2_500, 'b', false), link(2_600, 'b', true)])).toEqual([500]);
});

test('counts failed requests in the five seconds after a replica was killed', () => {
  const history = [
    kill,
    ...request(900, 1, { type: 'unknown', reason: 'reset' }),
    ...request(1_100, 2, { type: 'unknown', reason: 'reset' }),
    ...request(1_300, 3, { type: 'refused', status: 503, code: 'storage_unavailable' }),
    ...request(1_400, 4, { type: 'refused', status: 404, code: 'agent_not_found' }),
    ...request(1_500, 5, { type: 'succeeded' }),
    ...request(1_600, 6, { type: 'unknown', reason: 'reset' }, 'b'),
    ...request(6_100, 7, { type: 'unknown', reason: 'reset' }),
  ];
  expect(requestsAfterKills(history)).toEqual([{ requests: 4, failed: 2, lastFailureMs: 300 }]);
  expect(requestsAfterKills(history, true)).toHaveLength(1);
  const cut: Entry = { type: 'fault', at: 5_500, until: 7_000, kind: 'cut', subject: 'edge' };
  expect(requestsAfterKills([...history, cut], true)).toEqual([]);
  expect(refusalsDuring(history, 'kill-replica')).toEqual({
    ...{ reset: 1, '503 storage_unavailable': 1 },
  });
});

test('measures runs that a kill interrupts', () => {
  const run = (at: number, call: number, id: string, end: number): Entry[] => [
    { type: 'invoked', at, call, client: 'c', replica: 'balancer', request: { kind: 'run', assignment: 'all' } },
    { type: 'succeeded', at: at + 10, call, id },
    { type: 'run', at: end, replica: 'a', run: id, status: 'succeeded', finished: true, results: [] },
  ];
  expect(runsAcrossKills([kill, ...run(800, 1, 'r1', 1_800), ...run(1_100, 2, 'r2', 1_900)])).toEqual([1_000]);
});
