import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { close, joined } from '../../../test/replicas.ts';
import { takeLease } from '../../store/leases.ts';
import { statement } from '../../store/transaction.ts';
import { createLease, type Fence, type Lease } from './leases.ts';

const checkMs = 5_000;

const processes = 3;
const process = fc.nat({ max: processes - 1 });
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('hold' as const), process }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('write' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('release' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('create again' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('restart' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('close' as const), process }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('pass' as const), ms: fc.nat({ max: 2 * checkMs }) }) },
);

interface Process {
  readonly incarnation: string;
  readonly lease: Lease;
  /** The last fence that the process received. A stalled process still writes under it. */
  readonly fence: Fence | null;
}

describeDatabases('leases of several processes', (fixture) => {
  test('keeps one holder until it ends, and accepts writes only under its fence', async () => {
    const { context, clock, db } = await openDomain(fixture);
    let run = 0;
    let started = 0;
    /** Processes that have not been closed, including those that crashed. */
    const open = new Set<string>();
    const accepted = async (fence: Fence) => {
      try {
        await db.write({ name: 'test/fenced', statements: fence });
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: 'storage_unavailable' });
        return false;
      }
    };
    const start = async (name: string): Promise<Process> => {
      const incarnation = `process-${++started}`;
      open.add(incarnation);
      return { incarnation, lease: createLease(await joined(context, incarnation), name), fence: null };
    };
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (actions) => {
        const name = `lease-${++run}`;
        const all: Process[] = [];
        for (let each = 0; each < processes; each++) all.push(await start(name));
        /** The process that holds the lease, with the only fence that may write. */
        let holder: { incarnation: string; lease: Lease; fence: Fence } | null = null;
        for (const each of actions) {
          if (each.does === 'pass') {
            clock.advance(each.ms);
            continue;
          }
          const of = all[each.process]!;
          const { incarnation, lease } = of;
          if (each.does === 'restart') all[each.process] = await start(name);
          else if (each.does === 'create again')
            all[each.process] = { ...of, lease: createLease({ ...context, incarnation }, name) };
          else if (each.does === 'close') {
            await close(context, incarnation);
            open.delete(incarnation);
          } else if (each.does === 'release') {
            await lease.release();
            if (holder?.lease === lease) holder = null;
          } else if (each.does === 'hold') {
            const fence = await lease.hold();
            if (fence === null || fence === of.fence) continue;
            if (holder !== null && open.has(holder.incarnation)) expect(incarnation).toBe(holder.incarnation);
            holder = { incarnation, lease, fence };
            all[each.process] = { ...of, fence };
          } else if (of.fence !== null) expect(await accepted(of.fence)).toBe(of.fence === holder?.fence);
        }
        for (const incarnation of open) await close(context, incarnation);
        open.clear();
        const next = await (await start(name)).lease.hold();
        expect(await accepted(next!)).toBe(true);
        for (const { fence } of all) if (fence !== null) expect(await accepted(fence)).toBe(false);
      }),
      { numRuns: 25 },
    );
  });

  test('passes to a lease of the same process that was created again, and stays there', async () => {
    const { context, clock } = await openDomain(fixture);
    const former = createLease(context, 'work');
    expect(await former.hold()).not.toBeNull();
    const next = createLease(context, 'work');
    const fence = await next.hold();
    expect(fence).not.toBeNull();
    clock.advance(checkMs);
    expect(await former.hold()).toBeNull();
    expect(await next.hold()).toBe(fence);
    await next.release();
    expect(await former.hold()).not.toBeNull();
  });

  test('takes a lease from a release without incarnations', async () => {
    const { context, db } = await openDomain(fixture);
    const old = statement(takeLease, { name: 'work', holder: 'host:/var/lib/muster', former: 0 });
    await db.write({ name: 'test/old', statements: [old] });
    expect(await createLease(context, 'work').hold()).not.toBeNull();
  });
});
