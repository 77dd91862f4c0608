import { expect, test } from 'vitest';
import type { Hint } from '../../bus/bus.ts';
import { ReplicaClosed } from '../replicas/replicas.ts';
import { type FollowerParts, ReplicaFollower } from './follow-replicas.ts';
import type { LinkChange } from './link-view.ts';

const changed = (node_id: string, link_incarnation: string): LinkChange => ({
  ...{ node_id, link_incarnation, link_probe: null },
  hint: { type: 'agent_changed', node_id },
});

/** @param reads for each read, the changes that it returns, or its error */
const follow = (reads: (readonly LinkChange[] | Error)[]) => {
  const seen = { hints: [] as Hint[], cuts: [] as string[], closed: [] as Error[], fails: false };
  const done = async () => {};
  const parts = {
    context: {
      incarnation: 'own',
      now: () => 0,
      db: {
        get: async () => {
          if (seen.fails) throw new Error('no connection');
          return { link_incarnation: 'other' };
        },
        all: async () => [],
        alone: done,
      },
      bus: { publishHere: (hint: Hint) => seen.hints.push(hint) },
      presence: { isConnected: () => true },
      log: { warn: () => {} },
    },
    view: {
      readContacts: done,
      read: async () => {
        const changes = reads.shift() ?? [];
        if (changes instanceof Error) throw changes;
        return { changes, own: null };
      },
    },
    local: { nodeIds: [], contacts: () => [], has: () => true, cut: (nodeId: string) => seen.cuts.push(nodeId) },
    waiting: { poll: done },
    signIn: { recheck: done },
    terminals: { tokenHashes: () => [] },
    conductor: { followOthers: done },
    clock: { monotonic: () => 0 },
    onClosed: (reason: Error) => seen.closed.push(reason),
  } as unknown as FollowerParts;
  return { follower: new ReplicaFollower(parts), seen };
};

test('publishes all changes even if a later read fails, and closes moved links at the next attempt', async () => {
  const { follower, seen } = follow([[changed('web-1', 'other'), changed('web-2', 'own'), changed('web-3', 'other')]]);
  seen.fails = true;
  await follower.turn();
  expect(seen.hints.map((hint) => 'node_id' in hint && hint.node_id)).toEqual(['web-1', 'web-2', 'web-3']);
  expect(seen.cuts).toEqual([]);
  seen.fails = false;
  await follower.turn();
  expect(seen.cuts).toEqual(['web-1', 'web-3']);
  await follower.turn();
  expect(seen.hints).toHaveLength(3);
});

test('does not report an agent as disconnected if it has connected to this process', async () => {
  const hint: Hint = { type: 'agent_departed', node_id: 'web-1', heard_at: 1 };
  const { follower, seen } = follow([[{ ...changed('web-1', 'ended'), hint }]]);
  await follower.turn();
  expect(seen.hints).toEqual([]);
});

test('reports that another replica has closed this replica', async () => {
  const { follower, seen } = follow([new ReplicaClosed()]);
  await follower.turn();
  expect(seen.closed).toEqual([expect.any(ReplicaClosed)]);
});
