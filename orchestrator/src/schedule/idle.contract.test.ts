import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type DatabaseFixture, describeDatabases } from '../../test/databases/databases.ts';
import { openDomain } from '../../test/domain.ts';
import { createSequencer } from '../domain/audit/event-sequencer.ts';
import { createRunConductor } from '../domain/runs/run-conductor.ts';
import { Leases } from '../domain/shared/leases.ts';
import { withOverrides } from '../store/database.ts';
import { startAuditKeeping } from './audit-keeping.ts';
import { startDriftSweep } from './drift-sweep.ts';
import { startOutbox } from './outbox.ts';
import { startUpkeep } from './upkeep.ts';

describeDatabases('a process without work', (fixture) => {
  test('acquires all leases in one transaction, and then writes only a heartbeat every five seconds', async () => {
    const writes: string[] = [];
    let leaseReads = 0;
    const open = async () => {
      const db = await fixture.open();
      return withOverrides(db, {
        all: (query, params) => {
          if (query.name === 'leases/states') leaseReads++;
          return db.all(query, params);
        },
        write: (unit) => {
          writes.push(unit.name);
          return db.write(unit);
        },
      });
    };
    const domain = await openDomain({ ...fixture, open } as DatabaseFixture);
    const { context, clock } = domain;
    await domain.conductor.stop();
    const leases = new Leases(context);
    leases.want(['audit', 'upkeep', 'outbox', 'drift-sweep']);
    const runs = createRunConductor(context, { maxConcurrent: 1000, leases });
    const parts = [
      startAuditKeeping(context, clock, {
        lease: leases.lease('audit'),
        sequencer: createSequencer(context, { consumers: [] }),
        retentionDays: 0,
      }),
      startOutbox(context, clock, {
        lease: leases.lease('outbox'),
        deliver: async () => ({ status: 200, retryAfterMs: null }),
        random: () => 0,
        giveUpAfter: 60,
        retentionDays: 1,
      }),
      startDriftSweep(context, clock, {
        lease: leases.lease('drift-sweep'),
        random: () => 0,
        ...{ interval: 3600, maxConcurrent: 8, skipRecentlyApplied: 0 },
      }),
      startUpkeep(context, clock, { lease: leases.lease('upkeep'), runs }),
    ];
    const pass = async (secs: number) => {
      for (let passed = 0; passed < secs; passed++) {
        clock.advance(1_000);
        await sleep(20);
      }
    };
    await pass(10);
    // The first round of maintenance also deletes expired sign-in sessions.
    await vi.waitFor(() => expect(writes).toContain('sessions/expire'), { timeout: 20_000 });
    expect(writes.filter((name) => name === 'leases/take')).toHaveLength(1);
    writes.length = 0;
    leaseReads = 0;
    await pass(60);
    expect(new Set(writes)).toEqual(new Set(['health/beat']));
    expect(writes.length).toBeLessThanOrEqual(12);
    expect(leaseReads).toBeLessThanOrEqual(12);
    for (const part of parts) await part.stop();
    await runs.stop();
  });
});
