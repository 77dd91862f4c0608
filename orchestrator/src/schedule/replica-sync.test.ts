import { expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { createInProcessBus } from '../bus/in-process.ts';
import { startReplicaSync } from './replica-sync.ts';

/** Records the times at which links and everything else were read, in milliseconds after the start. */
function start() {
  const clock = new ManualClock();
  const startedAt = clock.monotonic();
  const bus = createInProcessBus((error) => {
    throw error;
  });
  const reads = { links: [] as number[], others: [] as number[] };
  const log = { info: () => {}, warn: () => {} };
  const db = { all: async () => [], alone: async () => {} };
  const done = async () => {};
  const sync = startReplicaSync({
    context: { bus, db, log, now: () => 0, incarnation: 'own' },
    view: {
      readContacts: done,
      read: async () => {
        reads.links.push(clock.monotonic() - startedAt);
        return { changes: [], own: null };
      },
    },
    waiting: {
      poll: async () => {
        reads.others.push(clock.monotonic() - startedAt);
      },
    },
    local: { contacts: () => [] },
    signIn: { recheck: done },
    terminals: { tokenHashes: () => [] },
    conductor: { followOthers: done },
    clock,
  } as unknown as Parameters<typeof startReplicaSync>[0]);
  /** Advances the time in steps of 50 ms. */
  const advance = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      clock.advance(50);
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    }
  };
  const hint = async (type: 'links_changed' | 'hints_lost') => {
    bus.publishHere({ type });
    await bus.delivered();
  };
  return { reads, advance, hint, sync };
}

test('reads everything once a second without hints', async () => {
  const { reads, advance } = start();
  await advance(3_000);
  expect(reads).toEqual({ links: [1_000, 2_000, 3_000], others: [1_000, 2_000, 3_000] });
});

test('reads links soon after a hint, at most every 100 ms, and everything else once a second', async () => {
  const { reads, advance, hint } = start();
  await advance(500);
  await hint('links_changed');
  await advance(50);
  for (let count = 0; count < 4; count++) {
    await hint('links_changed');
    await advance(50);
  }
  await advance(1_250);
  expect(reads).toEqual({ links: [500, 600, 700, 800, 1_000, 2_000], others: [1_000, 2_000] });
});

test('reads everything soon after hints were lost', async () => {
  const { reads, advance, hint } = start();
  await advance(500);
  await hint('links_changed');
  await hint('hints_lost');
  await hint('links_changed');
  await advance(1_450);
  expect(reads).toEqual({ links: [500, 1_500], others: [500, 1_500] });
});

test('reads nothing after it is stopped', async () => {
  const { reads, advance, hint, sync } = start();
  await hint('hints_lost');
  await sync.stop();
  await hint('hints_lost');
  await advance(2_000);
  expect(reads).toEqual({ links: [], others: [] });
});
