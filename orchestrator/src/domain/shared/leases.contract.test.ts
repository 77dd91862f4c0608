import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { openDomain } from '../../../test/domain.ts';
import { createLease, type Fence } from './leases.ts';

/** Maximum clock skew between processes, in milliseconds, as in leases.ts. */
const skewMs = 60_000;
const lifeMs = 10_000;

const processes = 3;
const process = fc.nat({ max: processes - 1 });
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('hold' as const), process }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('write' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('release' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('restart' as const), process }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('skew' as const), process, ms: fc.nat({ max: skewMs }) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('pass' as const), ms: fc.nat({ max: 2 * lifeMs }) }) },
);

describeDatabases('leases of several processes', (fixture) => {
  test('accept writes only under the newest fence, and are free after their lifetime, even if clocks differ', async () => {
    const { context, clock, db } = await openDomain(fixture);
    let run = 0;
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
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (actions) => {
        const name = `lease-${++run}`;
        const ahead = Array.from({ length: processes }, () => 0);
        const leaseOf = (of: number) =>
          createLease({ ...context, now: () => clock.now() + ahead[of]! }, name, `process-${of}`);
        const leases = ahead.map((_, of) => leaseOf(of));
        /** The last fence that each process received. A stalled process still writes under it. */
        const fences: (Fence | null)[] = ahead.map(() => null);
        let newest: Fence | null = null;
        const known = new Set<Fence>();
        for (const each of actions) {
          if (each.does === 'pass') clock.advance(each.ms);
          else if (each.does === 'skew') ahead[each.process] = each.ms;
          else if (each.does === 'restart') leases[each.process] = leaseOf(each.process);
          else if (each.does === 'release') await leases[each.process]!.release();
          else if (each.does === 'hold') {
            const fence = await leases[each.process]!.hold();
            if (fence === null) continue;
            if (!known.has(fence)) newest = fence;
            known.add(fence);
            fences[each.process] = fence;
          } else {
            const fence = fences[each.process] ?? null;
            if (fence !== null) expect(await accepted(fence)).toBe(fence === newest);
          }
        }
        ahead.fill(0);
        clock.advance(skewMs + lifeMs + 1);
        const next = await leaseOf(0).hold();
        expect(next).not.toBeNull();
        expect(await accepted(next!)).toBe(true);
        for (const former of fences) if (former !== null) expect(await accepted(former)).toBe(false);
      }),
      { numRuns: 25 },
    );
  });
});
