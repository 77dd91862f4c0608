import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
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
    let calls = 0;
    const counted = async <Result>(call: Promise<Result>): Promise<Result> => {
      calls++;
      return call.finally(() => calls--);
    };
    const open = async () => {
      const db = await fixture.open();
      return withOverrides(db, {
        get: (query, params) => counted(db.get(query, params)),
        all: (query, params) => {
          if (query.name === 'leases/states') leaseReads++;
          return counted(db.all(query, params));
        },
        write: (unit) => {
          writes.push(unit.name);
          return counted(db.write(unit));
        },
        alone: (query, params) => counted(db.alone(query, params)),
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
    /** Waits until no work is in progress, because all work calls the database again and again. */
    const settled = async () => {
      for (let idle = 0; idle < 3; idle = calls === 0 ? idle + 1 : 0) await sleep(5);
    };
    const pass = async (secs: number) => {
      for (let passed = 0; passed < secs; passed++) {
        clock.advance(1_000);
        await settled();
      }
    };
    await pass(10);
    // The first round of maintenance also deletes expired sign-in sessions.
    expect(writes).toContain('sessions/expire');
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
