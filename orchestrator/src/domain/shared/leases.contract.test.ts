import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { close, joined } from '../../../test/replicas.ts';
import { OutcomeUnknown, withOverrides } from '../../store/database.ts';
import { takeLease } from '../../store/leases.ts';
import { putSetting, setting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { alone } from '../replicas/placement.ts';
import { createLease, type Fence, fencedBy, LeaseLost, Leases } from './leases.ts';

const checkMs = 5_000;

const processes = 3;
const names = 2;
const process = fc.nat({ max: processes - 1 });
const lease = fc.nat({ max: names - 1 });
const fault = fc.constantFrom('failed' as const, 'answer lost' as const);
const action = fc.oneof(
  { weight: 5, arbitrary: fc.record({ does: fc.constant('hold' as const), process, lease }) },
  { weight: 5, arbitrary: fc.record({ does: fc.constant('write' as const), process, lease }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('release' as const), process, lease }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('create again' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('restart' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('close' as const), process }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('move' as const), process, lease }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('fail' as const), process, fault }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('pass' as const), ms: fc.nat({ max: 2 * checkMs }) }) },
);

type Action = typeof action extends fc.Arbitrary<infer Value> ? Value : never;
const lostTake: Action[] = [
  { does: 'fail', process: 2, fault: 'answer lost' },
  { does: 'hold', process: 2, lease: 0 },
];
const failedRelease: Action[] = [
  { does: 'hold', process: 1, lease: 0 },
  { does: 'fail', process: 1, fault: 'failed' },
  { does: 'release', process: 1, lease: 0 },
];
const createdAgain: Action[] = [
  { does: 'hold', process: 1, lease: 0 },
  { does: 'move', process: 0, lease: 0 },
  { does: 'create again', process: 1 },
  { does: 'hold', process: 1, lease: 0 },
  { does: 'write', process: 1, lease: 0 },
];

const injected = 'injected';
const onlyInjected = (error: unknown): undefined => {
  expect(String(error)).toContain(injected);
};

interface Holder {
  readonly incarnation: string;
  readonly leases: Leases;
  readonly fence: Fence;
  /**
   * Whether the holder may have lost the lease. Another `Leases` of the same process may have released it, because it
   * looks like a lease that was acquired without an answer. Or a process that received no answer may have acquired it.
   */
  mayBeLost: boolean;
}

interface Process {
  readonly incarnation: string;
  readonly leases: Leases;
  /** The last fence of each lease that the process received. A suspended process still writes under it. */
  readonly fences: Map<string, Fence>;
}

describeDatabases('leases of several processes', (fixture) => {
  test('keeps one holder for each lease until it ends, and accepts writes only under its fence', async () => {
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
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 60 }), async (actions) => {
        const nameOf = (index: number) => `lease-${run}-${index}`;
        run++;
        /** The process that should hold each lease; any process by default. */
        const preferred = new Map<string, number>();
        /** What happens to the next write of a process. */
        const faults = new Map<string, 'failed' | 'answer lost'>();
        const failing = (incarnation: string) =>
          withOverrides(db, {
            async write(unit) {
              const fault = faults.get(incarnation);
              faults.delete(incarnation);
              if (fault === 'failed') throw new Error(injected);
              const result = await db.write(unit);
              if (fault === 'answer lost') throw new OutcomeUnknown(unit.name, injected);
              return result;
            },
          });
        const create = (index: number, incarnation: string): Process => {
          const isPreferred = (name: string) => (preferred.get(name) ?? index) === index;
          return {
            incarnation,
            leases: new Leases({ ...context, db: failing(incarnation), incarnation }, { ...alone, isPreferred }),
            fences: new Map(),
          };
        };
        const start = async (index: number): Promise<Process> => {
          const incarnation = `process-${++started}`;
          open.add(incarnation);
          await joined(context, incarnation);
          return create(index, incarnation);
        };
        const all: Process[] = [];
        for (let each = 0; each < processes; each++) all.push(await start(each));
        /** The holder of each lease, with the only fence that may write. */
        const holders = new Map<string, Holder>();
        for (const each of actions) {
          if (each.does === 'pass') {
            clock.advance(each.ms);
            continue;
          }
          const of = all[each.process]!;
          const { incarnation, leases, fences } = of;
          if (each.does === 'restart') all[each.process] = await start(each.process);
          else if (each.does === 'fail') faults.set(incarnation, each.fault);
          else if (each.does === 'create again') all[each.process] = { ...create(each.process, incarnation), fences };
          else if (each.does === 'close') {
            await close(context, incarnation);
            open.delete(incarnation);
          } else {
            const name = nameOf(each.lease);
            const holder = holders.get(name);
            if (each.does === 'move') preferred.set(name, each.process);
            else if (each.does === 'release') {
              await leases.release([name]).catch(onlyInjected);
              if (holder?.leases === leases) holders.delete(name);
              fences.delete(name);
            } else if (each.does === 'hold') {
              for (const held of holders.values())
                if (held.incarnation === incarnation && held.leases !== leases) held.mayBeLost = true;
              const fence = await leases.hold(name).catch(onlyInjected);
              if (fence === undefined) {
                // If the answer was lost, the process may have acquired leases of closed processes.
                for (const held of holders.values()) if (!open.has(held.incarnation)) held.mayBeLost = true;
                continue;
              }
              if (fence !== null) expect(preferred.get(name) ?? each.process).toBe(each.process);
              if (fence === null || fence === fences.get(name)) continue;
              if (holder !== undefined && open.has(holder.incarnation) && !holder.mayBeLost)
                expect(incarnation).toBe(holder.incarnation);
              holders.set(name, { incarnation, leases, fence, mayBeLost: false });
              fences.set(name, fence);
            } else {
              const fence = fences.get(name);
              if (fence === undefined) continue;
              const isAccepted = await accepted(fence);
              if (fence === holder?.fence && holder.mayBeLost) continue;
              expect(isAccepted).toBe(fence === holder?.fence);
            }
          }
        }
        // Without further faults, a lease reaches the process that should hold it, unless a crashed process holds it.
        faults.clear();
        for (let index = 0; index < names; index++) preferred.set(nameOf(index), 0);
        const living = new Set(all.map(({ incarnation }) => incarnation));
        for (const incarnation of open) if (!living.has(incarnation)) await close(context, incarnation);
        for (let round = 0; round < 2; round++) {
          clock.advance(checkMs);
          for (const { leases } of all.toReversed())
            for (let index = 0; index < names; index++)
              if ((await leases.hold(nameOf(index))) === null) await leases.release([nameOf(index)]);
        }
        for (let index = 0; index < names; index++) {
          const fence = await all[0]!.leases.hold(nameOf(index));
          expect(fence).not.toBeNull();
          all[0]!.fences.set(nameOf(index), fence!);
        }
        for (const incarnation of open) await close(context, incarnation);
        open.clear();
        preferred.clear();
        const next = await start(0);
        for (let index = 0; index < names; index++) {
          const name = nameOf(index);
          expect(await accepted((await next.leases.hold(name))!)).toBe(true);
          for (const { fences } of all) expect(fences.has(name) && (await accepted(fences.get(name)!))).toBe(false);
        }
      }),
      { numRuns: 25, examples: [[lostTake], [failedRelease], [createdAgain]] },
    );
  });

  test('checks all leases that a process requests in one read, and acquires them in one transaction', async () => {
    const { context, clock } = await openDomain(fixture);
    const calls: string[] = [];
    const { db } = context;
    const counting = withOverrides(db, {
      all: (query, params) => {
        calls.push(query.name);
        return db.all(query, params);
      },
      write: (unit) => {
        calls.push(unit.name);
        return db.write(unit);
      },
    });
    const leases = new Leases({ ...context, db: counting });
    leases.want(['a', 'b', 'c']);
    const held = await Promise.all(['a', 'b', 'c'].map((name) => leases.hold(name)));
    expect(held).not.toContain(null);
    expect(calls).toEqual(['leases/states', 'leases/take']);
    clock.advance(checkMs);
    expect(await Promise.all(['a', 'b', 'c'].map((name) => leases.hold(name)))).toEqual(held);
    expect(calls).toEqual(['leases/states', 'leases/take', 'leases/states']);
  });

  test('acquires a lease again if the outcome of acquiring it is unknown', async () => {
    const { context, clock } = await openDomain(fixture);
    const { db } = context;
    let isLost = false;
    const losing = withOverrides(db, {
      async write(unit) {
        const result = await db.write(unit);
        if (isLost && unit.name === 'leases/take') throw new OutcomeUnknown(unit.name, 'the connection was lost');
        return result;
      },
    });
    const one = new Leases({ ...context, db: losing });
    const first = await one.hold('work');
    await one.release(['work']);
    isLost = true;
    await expect(one.hold('work')).rejects.toThrow(OutcomeUnknown);
    isLost = false;
    clock.advance(checkMs);
    const second = await one.hold('work');
    expect(second).not.toBeNull();
    expect(second).not.toBe(first);
  });

  test('refuses all transactions of a fenced context after another process has acquired the lease', async () => {
    const { context, db } = await openDomain(fixture);
    const former = await joined(context, 'former');
    const fenced = fencedBy(former, (await createLease(former, 'work').hold())!);
    const put = (value: string) => ({
      name: 'test/put',
      statements: [statement(putSetting, { key: 'test', value })],
    });
    const read = statement(setting, { key: 'test' });
    await fenced.db.write(put('one'));
    expect((await fenced.db.write({ name: 'test/read', statements: [read] })).of(read).rows).toEqual([
      expect.objectContaining({ value: 'one' }),
    ]);
    await close(context, 'former');
    await fenced.db.write(put('two'));
    expect(await createLease(await joined(context, 'next'), 'work').hold()).not.toBeNull();
    await expect(fenced.db.write(put('three'))).rejects.toThrow(LeaseLost);
    expect(await db.get(setting, { key: 'test' })).toMatchObject({ value: 'two' });
  });

  test('moves a lease to a re-created lease object of the same process, and keeps it there', async () => {
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

  test('counts a lease as lost only if another process took it', async () => {
    const { context, clock } = await openDomain(fixture);
    const former = await joined(context, 'former');
    const leases = new Leases(former);
    await leases.hold('work');
    const again = new Leases(former);
    await again.hold('work');
    clock.advance(checkMs);
    expect(await leases.hold('work')).toBeNull();
    expect(leases.counts).toEqual({ held: 0, lost: 0 });
    await again.release(['work']);
    await leases.hold('work');
    expect(leases.counts).toEqual({ held: 1, lost: 0 });
    await close(context, 'former');
    await createLease(await joined(context, 'next'), 'work').hold();
    clock.advance(checkMs);
    expect(await leases.hold('work')).toBeNull();
    expect(leases.counts).toEqual({ held: 0, lost: 1 });
  });

  test('takes over a lease that a release without incarnations acquired', async () => {
    const { context, db } = await openDomain(fixture);
    const old = statement(takeLease, { name: 'work', holder: 'host:/var/lib/muster', former: 0 });
    await db.write({ name: 'test/old', statements: [old] });
    expect(await createLease(context, 'work').hold()).not.toBeNull();
  });

  test('drops a lease as soon as a write under its fence is refused', async () => {
    const { context, db } = await openDomain(fixture);
    const former = await joined(context, 'former');
    const leases = new Leases(former);
    const fence = (await leases.hold('work'))!;
    await close(context, 'former');
    const next = createLease(await joined(context, 'next'), 'work');
    await next.hold();
    const unit = { name: 'test/put', statements: [statement(putSetting, { key: 'test', value: 'one' })] };
    expect(await leases.hold('work')).toBe(fence);
    await expect(fencedBy({ db }, fence).db.write(unit)).rejects.toThrow(LeaseLost);
    expect(await leases.hold('work')).toBeNull();
  });
});
