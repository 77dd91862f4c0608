import { expect, test } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { openDomain } from '../../test/domain.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { startDiskGuard } from './disk-guard.ts';

/** Free space simulated by the test. */
describeDatabases('disk guard', (fixture) => {
  async function guarded() {
    const domain = await openDomain(fixture);
    const { context, clock } = domain;
    const disk = { size: 1000, free: 500, looks: 0, broken: false };
    const start = () =>
      startDiskGuard(context, clock, {
        usage: async () => {
          disk.looks++;
          if (disk.broken) throw new Error('EIO');
          return { size: disk.size, free: disk.free };
        },
        reserve: () => 100,
      });
    const events = async () => (await listAudit(context, {})).events.map(({ event_type }) => event_type).reverse();
    return { domain, clock, disk, start, events };
  }

  test('records one event when disk space is low and one event when it recovers, even across a restart', async () => {
    const { disk, start, events } = await guarded();
    let guard = start();
    await guard.look();
    expect(guard.space).toEqual({ size: 1000, free: 500, reserve: 100, low: false });
    expect(await events()).toEqual([]);
    disk.free = 99;
    await guard.look();
    await guard.look();
    expect(guard.low).toBe(true);
    expect(await events()).toEqual(['disk.low']);
    await guard.stop();
    guard = start();
    await guard.look();
    expect(guard.low).toBe(true);
    expect(await events()).toEqual(['disk.low']);
    disk.free = 110;
    await guard.look();
    expect(guard.low).toBe(true);
    disk.free = 125;
    await guard.look();
    expect(guard.low).toBe(false);
    expect(await events()).toEqual(['disk.low', 'disk.recovered']);
    await guard.stop();
  });

  test('measures every five seconds, or every second near the reserve, and does not treat an unreadable disk as full', async () => {
    const { domain, clock, disk, start } = await guarded();
    const guard = start();
    await guard.look();
    /** Completes a due measurement and the writes that result from it. */
    const pass = async (ms: number) => {
      clock.advance(ms);
      await guard.stop().then(() => {});
    };
    expect(disk.looks).toBe(1);
    clock.advance(4_999);
    expect(disk.looks).toBe(1);
    disk.free = 399;
    await pass(1);
    expect(disk.looks).toBe(2);
    const near = start();
    await near.look();
    disk.broken = true;
    clock.advance(5_000);
    await expect.poll(() => near.space).toBeNull();
    expect(near.low).toBe(false);
    await near.stop();
    await domain.db.close();
  });
});
