import { expect, test } from 'vitest';
import { agentToDisplace, type PendingAgent } from './pending-slot.ts';

const agent = (node_id: string, site: string, connected: boolean, last_seen_at = 0): PendingAgent => ({
  node_id,
  site,
  connected,
  last_seen_at,
});
const chosen = (waiting: PendingAgent[], site: string) => agentToDisplace(waiting, site)?.node_id ?? null;

test('displaces the least recently seen agent from the network with the most agents', () => {
  const waiting = [
    agent('lone', 'B', false, 1),
    agent('a1', 'A', false, 30),
    agent('a2', 'A', false, 20),
    agent('a3', 'A', true, 10),
  ];
  expect(chosen(waiting, 'C')).toBe('a2');
});

test('prefers a disconnected agent over a connected one', () => {
  const waiting = [agent('a1', 'A', true), agent('a2', 'A', true), agent('a3', 'A', true), agent('b1', 'B', false)];
  expect(chosen(waiting, 'C')).toBe('b1');
});

test('displaces a connected agent if its network still has more agents than the new agent’s network', () => {
  const waiting = [agent('a1', 'A', true, 1), agent('a2', 'A', true, 2), agent('a3', 'A', true, 3)];
  expect(chosen(waiting, 'B')).toBe('a3');
  expect(chosen([agent('a1', 'A', true), agent('b1', 'B', true)], 'C')).toBeNull();
});

test('displaces no agent if no network has more agents than the new agent’s network', () => {
  const waiting = [agent('a1', 'A', false), agent('a2', 'A', false), agent('b1', 'B', false)];
  expect(chosen(waiting, 'A')).toBeNull();
  expect(chosen([], 'A')).toBeNull();
});
