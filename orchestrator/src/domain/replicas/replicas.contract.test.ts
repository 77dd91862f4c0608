import { expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { startBeats } from '../../schedule/beats.ts';
import type { Database } from '../../store/database.ts';
import { closeReplica, drainReplica, otherReplicas, raiseBeat, undrainReplica } from '../../store/replicas.ts';
import { closeOtherReplicas, joinReplicas, type Replica, ReplicaClosed } from './replicas.ts';
import { createServerClock } from './server-clock.ts';

const silent = () => {};
const log = { debug: silent, info: silent, warn: silent, error: silent };

const standing = () => ({ ready: true, configDigest: 'same' });

describeDatabases('replicas', (fixture) => {
  const join = async (db: Database, incarnation: string, onDraining: (draining: boolean) => void = () => {}) => {
    const local = new ManualClock();
    const clock = createServerClock(local);
    const replica = await joinReplicas({
      db,
      clock,
      log,
      incarnation,
      name: incarnation,
      version: '1',
      standing,
      onDraining,
    });
    return { local, clock, replica };
  };
  const beat = async ({ replica }: { replica: Replica }) => {
    await replica.beat();
    await replica.readPeers();
  };
  const all = async (db: Database) =>
    (await db.all(otherReplicas, { incarnation: '' })).map(({ incarnation }) => incarnation).toSorted();

  test('uses the database server’s time', async () => {
    const { clock } = await join(await fixture.open(), 'one');
    // The test clock and the server's clock differ by more than this.
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(600_000);
  });

  test('closes a replica without heartbeats, which stays closed after its next heartbeat', async () => {
    const db = await fixture.open();
    const one = await join(db, 'one');
    const two = await join(db, 'two');
    for (let passed = 0; passed <= 10_000; passed += 2_000) {
      expect(await all(db)).toEqual(['one', 'two']);
      one.local.advance(2_000);
      await beat(one);
    }
    expect(await all(db)).toEqual(['one']);
    await expect(two.replica.beat()).rejects.toThrow(ReplicaClosed);
    expect(await all(db)).toEqual(['one']);
  });

  test('keeps replicas that send heartbeats, until they leave', async () => {
    const db = await fixture.open();
    const one = await join(db, 'one');
    const two = await join(db, 'two');
    for (let passed = 0; passed < 20_000; passed += 2_000) {
      for (const joined of [one, two]) {
        joined.local.advance(2_000);
        await beat(joined);
      }
    }
    expect(await all(db)).toEqual(['one', 'two']);
    await two.replica.leave();
    expect(await all(db)).toEqual(['one']);
  });

  test('keeps a replica that sent a heartbeat after its row was read', async () => {
    const db = await fixture.open();
    const { replica } = await join(db, 'one');
    await replica.beat();
    expect((await db.alone(closeReplica, { incarnation: 'one', beat: 0 })).changes).toBe(0);
    expect((await db.alone(closeReplica, { incarnation: 'one', beat: 1 })).changes).toBe(1);
  });

  test('closes all other replicas when only one process can use the database', async () => {
    const db = await fixture.open();
    for (const name of ['one', 'two', 'three']) await join(db, name);
    await closeOtherReplicas(db, 'two');
    expect(await all(db)).toEqual(['two']);
  });

  test('spreads leases over the live replicas that are not stopping', async () => {
    const db = await fixture.open();
    const one = await join(db, 'one');
    const names = Array.from({ length: 32 }, (_, index) => `lease-${index}`);
    const preferredBy = ({ replica }: typeof one) => names.filter((name) => replica.placement.isPreferred(name));
    expect(one.replica.placement.shared).toBe(false);
    expect(preferredBy(one)).toEqual(names);
    const two = await join(db, 'two');
    // The second replica has read the first replica's row when it joined.
    const ofTwo = preferredBy(two);
    expect(ofTwo.length).toBeGreaterThan(0);
    expect(ofTwo.length).toBeLessThan(names.length);
    await beat(one);
    expect(one.replica.placement.shared).toBe(true);
    expect([...preferredBy(one), ...ofTwo].toSorted()).toEqual(names.toSorted());
    await two.replica.prepareToLeave();
    expect(preferredBy(two)).toEqual([]);
    await beat(one);
    expect(preferredBy(one)).toEqual(names);
    await one.replica.prepareToLeave();
    expect(preferredBy(one)).toEqual(names);
    expect(one.replica.placement.peerLeftAt).toBe(Number.NEGATIVE_INFINITY);
    one.local.advance(1_000);
    await two.replica.leave();
    await beat(one);
    expect(one.replica.placement.peerLeftAt).toBe(one.local.monotonic());
    expect(one.replica.placement.shared).toBe(false);
    expect(preferredBy(one)).toEqual(names);
  });

  test('reports whether another replica is ready to take over agents', async () => {
    const db = await fixture.open();
    const one = await join(db, 'one');
    expect(one.replica.hasReadyPeer).toBe(false);
    const two = await join(db, 'two');
    await one.replica.readPeers();
    // This replica has sent no heartbeat, like a release that does not report whether it is ready.
    expect(one.replica.hasReadyPeer).toBe(true);
    for (const [ready, expected] of [
      [0, false],
      [1, true],
    ] as const) {
      await db.alone(raiseBeat, { incarnation: 'two', ready, config_digest: '' });
      await one.replica.readPeers();
      expect(one.replica.hasReadyPeer).toBe(expected);
    }
    await two.replica.prepareToLeave();
    await one.replica.readPeers();
    expect([one.replica.hasReadyPeer, one.replica.placement.shared]).toEqual([false, true]);
  });

  test('counts a process as ready only while it reads heartbeats of it', async () => {
    const db = await fixture.open();
    const one = await join(db, 'one');
    const two = await join(db, 'two');
    await two.replica.beat();
    await beat(one);
    one.local.advance(3_000);
    expect(one.replica.states).toEqual(['ready', 'ready']);
    one.local.advance(3_000);
    expect(one.replica.states).toEqual(['ready', 'not_ready']);
    await two.replica.beat();
    await beat(one);
    expect(one.replica.states).toEqual(['ready', 'ready']);
  });

  test('reports once when an operator drains or undrains it, and holds no leases while it is drained', async () => {
    const db = await fixture.open();
    const reports: boolean[] = [];
    const one = await join(db, 'one', (draining) => reports.push(draining));
    const two = await join(db, 'two');
    await two.replica.beat();
    await db.alone(drainReplica, { incarnation: 'one', successors: ['two'] });
    expect([reports, one.replica.draining]).toEqual([[], false]);
    await beat(one);
    await beat(one);
    expect([reports, one.replica.draining]).toEqual([[true], true]);
    expect(one.replica.placement.isPreferred('any')).toBe(false);
    await db.alone(undrainReplica, { incarnation: 'one' });
    expect(await db.all(otherReplicas, { incarnation: 'two' })).toMatchObject([{ draining: 0, ready: 0 }]);
    await beat(one);
    await beat(one);
    expect([reports, one.replica.draining]).toEqual([[true, false], false]);
    const names = Array.from({ length: 32 }, (_, index) => `lease-${index}`);
    expect(names.some((name) => one.replica.placement.isPreferred(name))).toBe(true);
  });

  test('ignores drains by operators while it stops', async () => {
    const db = await fixture.open();
    const reports: boolean[] = [];
    const one = await join(db, 'one', (draining) => reports.push(draining));
    const two = await join(db, 'two');
    await two.replica.beat();
    await one.replica.prepareToLeave();
    expect((await db.alone(undrainReplica, { incarnation: 'one' })).changes).toBe(0);
    expect((await db.alone(drainReplica, { incarnation: 'one', successors: ['two'] })).changes).toBe(0);
    await one.replica.beat();
    expect([reports, one.replica.draining]).toEqual([[], true]);
  });

  test('stops its heartbeats, and reports once that it was closed', async () => {
    const db = await fixture.open();
    const { local, clock, replica } = await join(db, 'one');
    const reasons: Error[] = [];
    const closed = new Promise<void>((resolve) => {
      startBeats(replica, {
        clock,
        log,
        inFleet: true,
        onClosed: (reason) => {
          reasons.push(reason);
          resolve();
        },
      });
    });
    await closeOtherReplicas(db, 'two');
    local.advance(2_000);
    await closed;
    expect(reasons).toEqual([expect.any(ReplicaClosed)]);
    expect(local.next).toBeNull();
  });
});
