import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { describePostgres } from '../../../test/databases/databases.ts';
import { newAdmin, openDomain } from '../../../test/domain.ts';
import type { Database } from '../../store/database.ts';
import { drainReplica, insertReplica, raiseBeat, removeReplica, stopReplica } from '../../store/replicas.ts';
import { listAudit } from '../audit/audit.ts';
import { Leases } from '../shared/leases.ts';
import { listReplicas, requestDraining } from './replica-list.ts';

describePostgres('the list of replicas', (fixture) => {
  async function open() {
    const at = await fixture.newAddress();
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const ages = new Map<string, number>();
    const parts = {
      context,
      replica: { incarnation: 'of b', heartbeatAge: (incarnation: string) => ages.get(incarnation) ?? 0 },
      connectedTo: (incarnation: string) => (incarnation === 'of a' ? 7 : 0),
    };
    /** Registers a replica. @param ready null for a release that does not store readiness */
    const join = async (name: string, ready: 0 | 1 | null) => {
      const incarnation = `of ${name}`;
      await context.db.alone(insertReplica, { incarnation, name, version: '1.2.3', started_at: 1_700_000_000 });
      if (ready !== null) await context.db.alone(raiseBeat, { incarnation, ready, config_digest: 'digest' });
    };
    return { at, context, actor, ages, parts, join };
  }

  test('shows each replica with its leases, agents, and last heartbeat', async () => {
    const { context, ages, parts, join } = await open();
    await join('b', 1);
    await join('a', null);
    ages.set('of a', 3_449);
    for (const name of ['upkeep', 'audit']) await new Leases({ ...context, incarnation: 'of b' }).lease(name).hold();
    await new Leases({ ...context, incarnation: 'closed' }).lease('outbox').hold();
    const common = { version: '1.2.3', started_at: 1_700_000_000, draining: false };
    expect(await listReplicas(parts)).toEqual([
      {
        ...{ ...common, name: 'a', incarnation: 'of a', this_replica: false, heartbeat_age_secs: 3.4 },
        ...{ ready: false, connected_agents: 7, leases: [], config_digest: null },
      },
      {
        ...{ ...common, name: 'b', incarnation: 'of b', this_replica: true, heartbeat_age_secs: 0 },
        ...{ ready: true, connected_agents: 0, leases: ['audit', 'upkeep'], config_digest: 'digest' },
      },
    ]);
  });

  test('drains a replica if another replica is ready, and records the operator', async () => {
    const { context, actor, ages, parts, join } = await open();
    const drain = (name: string) => requestDraining(parts, actor, name, true);
    await join('a', 1);
    await expect(drain('c')).rejects.toMatchObject({ code: 'replica_not_found' });
    await expect(drain('a')).rejects.toMatchObject({ code: 'last_replica' });
    await join('b', 0);
    await expect(drain('a')).rejects.toMatchObject({ code: 'last_replica' });
    await context.db.alone(raiseBeat, { incarnation: 'of b', ready: 1, config_digest: 'digest' });
    ages.set('of b', 6_000);
    await expect(drain('a')).rejects.toMatchObject({ code: 'last_replica' });
    ages.clear();
    expect(await drain('a')).toMatchObject({ name: 'a', draining: true, ready: false });
    expect(await listReplicas(parts)).toMatchObject([
      { draining: true, ready: false },
      { draining: false, ready: true },
    ]);
    expect(await drain('a')).toMatchObject({ name: 'a', draining: true, ready: false });
    await expect(drain('b')).rejects.toMatchObject({ code: 'last_replica' });
    const { events } = await listAudit(context, { event_type: 'replica.drain_requested' });
    expect(events).toMatchObject([{ actor: { id: actor.id }, metadata: { replica: 'a' } }]);
  });

  test('drains only one of two replicas if both are requested at once', async () => {
    const { at, context, actor, parts, join } = await open();
    await join('a', 1);
    await join('b', 1);
    const other = new Client({ connectionString: at });
    await other.connect();
    try {
      // The other request has drained B, but not committed that.
      await other.query('begin');
      await other.query(`update replicas set draining = 1 where name = 'b'`);
      let isSettled = false;
      const outcome = requestDraining(parts, actor, 'a', true)
        .then(
          () => 'drained',
          (error: { code: string }) => error.code,
        )
        .finally(() => {
          isSettled = true;
        });
      while (!isSettled && context.db.stats().retries === 0) await sleep(5);
      await other.query('commit');
      expect(await outcome).toBe('last_replica');
      expect(await listReplicas(parts)).toMatchObject([{ draining: false }, { draining: true }]);
    } finally {
      await other.end();
    }
    expect((await context.db.alone(drainReplica, { incarnation: 'of a', successors: ['of b'] })).changes).toBe(0);
  });

  test('refuses to drain while another transaction has locked a row, and delays no heartbeat', async () => {
    const { at, context, actor, parts, join } = await open();
    for (const name of ['a', 'b', 'c']) await join(name, 1);
    const ofB = await fixture.open({ at });
    const other = new Client({ connectionString: at });
    await other.connect();
    try {
      await other.query('begin');
      await other.query(`select from replicas where name = 'c' for update`);
      let isSettled = false;
      const outcome = requestDraining(parts, actor, 'a', true)
        .catch(({ code, message }) => `${code}: ${message}`)
        .finally(() => {
          isSettled = true;
        });
      while (!isSettled) {
        await ofB.alone(raiseBeat, { incarnation: 'of b', ready: 1, config_digest: 'digest' });
        await sleep(5);
      }
      expect(await outcome).toMatch(
        /^storage_unavailable: replicas\/drain found rows that another transaction has locked/,
      );
      expect(await listReplicas(parts)).toMatchObject([{ draining: false }, { draining: false }, { draining: false }]);
    } finally {
      await other.end();
    }
    expect(await requestDraining(parts, actor, 'a', true)).toMatchObject({ draining: true });
    expect(context.db.stats().retries).toBeGreaterThan(0);
  });

  test('undrains a replica, unless it is stopping, and records the operator', async () => {
    const { context, actor, parts, join } = await open();
    const undrain = (name: string) => requestDraining(parts, actor, name, false);
    await join('a', 1);
    await join('b', 1);
    await expect(undrain('c')).rejects.toMatchObject({ code: 'replica_not_found' });
    expect(await undrain('a')).toMatchObject({ name: 'a', draining: false });
    expect((await listAudit(context, { event_type: 'replica.undrain_requested' })).events).toEqual([]);
    await requestDraining(parts, actor, 'a', true);
    expect(await undrain('a')).toMatchObject({ name: 'a', draining: false });
    expect(await listReplicas(parts)).toMatchObject([{ draining: false }, { draining: false }]);
    const { events } = await listAudit(context, { event_type: 'replica.undrain_requested' });
    expect(events).toMatchObject([{ actor: { id: actor.id }, metadata: { replica: 'a' } }]);
    await context.db.alone(stopReplica, { incarnation: 'of a' });
    expect(await listReplicas(parts)).toMatchObject([{ draining: true }, { draining: false }]);
    await expect(undrain('a')).rejects.toMatchObject({ code: 'replica_stopping' });
    // A replica that is stopping is not drained as well, so that it cannot be undrained afterward.
    expect(await requestDraining(parts, actor, 'a', true)).toMatchObject({ draining: true });
    await expect(undrain('a')).rejects.toMatchObject({ code: 'replica_stopping' });
  });

  test('does not report a replica as drained if it was closed in the meantime', async () => {
    const { context, actor, parts, join } = await open();
    await join('a', 1);
    await join('b', 1);
    const { db } = context;
    const closing: Pick<Database, 'all' | 'alone' | 'write'> = {
      all: (query, params) => db.all(query, params),
      alone: (query, params) => db.alone(query, params),
      write: async (unit) => {
        await db.alone(removeReplica, { incarnation: 'of a' });
        return await db.write(unit);
      },
    };
    const meanwhile = { ...parts, context: { ...context, db: closing as Database } };
    await expect(requestDraining(meanwhile, actor, 'a', true)).rejects.toMatchObject({ code: 'replica_not_found' });
  });
});
