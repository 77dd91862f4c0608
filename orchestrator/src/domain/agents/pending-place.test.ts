import { expect, test } from 'vitest';
import { givingWay, type PendingAgent } from './pending-place.ts';

const agent = (node_id: string, site: string, connected: boolean, last_seen_at = 0): PendingAgent => ({
  node_id,
  site,
  connected,
  last_seen_at,
});
const chosen = (waiting: PendingAgent[], site: string) => givingWay(waiting, site)?.node_id ?? null;

test('gives the place of the agent that has been gone for longest, of the site with the most', () => {
  const waiting = [
    agent('lone', 'B', false, 1),
    agent('a1', 'A', false, 30),
    agent('a2', 'A', false, 20),
    agent('a3', 'A', true, 10),
  ];
  expect(chosen(waiting, 'C')).toBe('a2');
});

test('takes an agent that is not connected before any that is', () => {
  const waiting = [agent('a1', 'A', true), agent('a2', 'A', true), agent('a3', 'A', true), agent('b1', 'B', false)];
  expect(chosen(waiting, 'C')).toBe('b1');
});

test('takes a connected agent of a site that still has more than the new one', () => {
  const waiting = [agent('a1', 'A', true, 1), agent('a2', 'A', true, 2), agent('a3', 'A', true, 3)];
  expect(chosen(waiting, 'B')).toBe('a3');
  expect(chosen([agent('a1', 'A', true), agent('b1', 'B', true)], 'C')).toBeNull();
});

test('gives no place to a site that has as many as any other', () => {
  const waiting = [agent('a1', 'A', false), agent('a2', 'A', false), agent('b1', 'B', false)];
  expect(chosen(waiting, 'A')).toBeNull();
  expect(chosen([], 'A')).toBeNull();
});
