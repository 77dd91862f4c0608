import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import type { Replica } from '../domain/replicas/replicas.ts';
import { startBeats } from './beats.ts';
import { lostAfterMs } from './link-release.ts';

const silent = () => {};
const log = { debug: silent, info: silent, warn: silent, error: silent };

/**
 * @param beatMs returns the duration of a heartbeat that begins now, in milliseconds; if negative, the heartbeat fails
 *   after that time
 */
function start(inFleet: boolean, beatMs: (at: number) => number, readPeers: () => Promise<void>) {
  const clock = new ManualClock();
  const zero = clock.monotonic();
  const began: number[] = [];
  let beatAt = zero;
  let oldest = 0;
  const beat = () => {
    const at = clock.monotonic();
    began.push(at - zero);
    const ms = beatMs(at - zero);
    return new Promise<void>((resolve, reject) => {
      clock.after(Math.abs(ms), () => {
        if (ms < 0) return reject(new Error('timeout'));
        beatAt = at;
        resolve();
      });
    });
  };
  const replica = { beat, readPeers, leave: async () => {} } satisfies Partial<Replica> as unknown as Replica;
  startBeats(replica, { clock, log, inFleet, onClosed: silent });
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      oldest = Math.max(oldest, clock.monotonic() - beatAt);
      await turn();
    }
  };
  return { began, pass, oldest: () => oldest };
}

test('retries a timed-out heartbeat early enough that the replica does not count as lost', async () => {
  // The database stalls once: a heartbeat that begins during the stall fails after three seconds.
  const { began, pass, oldest } = start(
    true,
    (at) => (at > 1_900 && at < 4_000 ? -3_000 : 100),
    async () => {},
  );
  await pass(10_000);
  expect(began.slice(0, 3).map((at) => Math.round(at / 1_000))).toEqual([2, 5, 7]);
  expect(oldest()).toBeLessThan(lostAfterMs - 3_000);
});

test('continues a replica’s heartbeats while a read of the other replicas hangs', async () => {
  let reads = 0;
  const never = () => {
    reads++;
    return new Promise<void>(() => {});
  };
  const { began, pass } = start(true, () => 100, never);
  await pass(9_000);
  expect([began.length, reads]).toEqual([4, 1]);
});

test('waits for the full interval after each heartbeat if the process runs alone', async () => {
  const { began, pass } = start(
    false,
    () => 500,
    async () => {},
  );
  await pass(8_000);
  expect(began.map((at) => Math.round(at / 500) * 500)).toEqual([2_000, 4_500, 7_000]);
});
