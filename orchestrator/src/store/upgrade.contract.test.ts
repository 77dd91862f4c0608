import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { placeAll } from '../../test/audit.ts';
import { describeDatabases } from '../../test/databases/databases.ts';
import { fillFirstRelease, firstRelease } from '../../test/databases/first-release.ts';
import { connect, openDomain } from '../../test/domain.ts';
import { getOperation, getRun, getState } from '../../test/reading.ts';
import { terminalsFixture } from '../../test/terminals.ts';
import { createVerifier } from '../domain/audit/audit-verification.ts';
import { getDrift, latestDrift, listLatestDrift } from '../domain/drift/drift.ts';
import { acceptDrift } from '../domain/drift/drift-acceptance.ts';
import { createOffRanking } from '../domain/drift/off-ranking.ts';
import { listReconcile } from '../domain/drift/reconcile.ts';
import { leaseStates, takeLease } from './leases.ts';
import { migrations } from './migrations/index.ts';
import { defineQuery } from './query.ts';
import { insertReplica, otherReplicas } from './replicas.ts';
import { statement } from './transaction.ts';

const migrator = fileURLToPath(new URL('../../test/databases/migrate-until-killed.ts', import.meta.url));

describeDatabases('a database of the first schema', (fixture) => {
  const filled = async () => {
    const at = await fixture.newAddress();
    const old = await fixture.open({ at, migrations: migrations.slice(0, 1) });
    await fillFirstRelease(old);
    await old.close();
    return at;
  };

  test('upgrades a database with all its content, even if the process is killed during the upgrade', async () => {
    const at = await filled();
    for (const [version, after] of [
      [2, 3],
      [4, 9],
      [6, 6],
    ]) {
      const child = spawn(process.execPath, [migrator, fixture.kind, at, `${after}`, `${version}`], {
        stdio: 'inherit',
      });
      expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
    }
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { context, conductor } = domain;
    const { agentName, applied, drifted, runs, waiting } = firstRelease;
    expect(await getOperation(context, applied)).toMatchObject({ status: 'succeeded', summary: { total: 1 } });
    expect(await getState(context, agentName)).toMatchObject({
      applied: [{ identity: '/f', operation_id: applied }],
      snapshot_operation_id: applied,
    });
    expect(await latestDrift(context, agentName)).toEqual(await getDrift(context, drifted));
    const latest = (await listLatestDrift(context, { limit: 9, offset: 0 })).items;
    expect(latest.map(({ drift_id, status }) => [drift_id, status])).toEqual([[drifted, 'drifted']]);

    await conductor.sweep();
    expect(await getRun(context, runs[0])).toMatchObject({ status: 'failed', results: [{ status: 'failed' }] });
    expect(await getRun(context, runs[1])).toMatchObject({ status: 'running', results: [{ status: 'queued' }] });
    await placeAll(domain);
    const verdict = await createVerifier(context).verify(new AbortController().signal);
    expect(verdict).toMatchObject({ ok: true, verified: 4, unchained: 0 });
    await connect(domain, { hex: firstRelease.publicKey, id: firstRelease.node, sign: () => '' });
    expect(waiting).toBe((await domain.links.nextOperation(firstRelease.node))?.operation.operation_id);
    await conductor.stop();
  });
});

describeDatabases('drift and failed applies from before an upgrade', (fixture) => {
  test('reports drift from before the upgrade, which can still be accepted', async () => {
    const at = await fixture.newAddress();
    const old = await fixture.open({ at, migrations: migrations.slice(0, 1) });
    await fillFirstRelease(old);
    await old.close();
    const before = await fixture.open({ at, migrations: migrations.slice(0, 12) });
    const { node, agentName, drifted } = firstRelease;
    const id = (n: number) => `01HF7YAU00000000000000000${n}`;
    const operation = (n: number, kind: string, status: string) =>
      `('${id(n)}', '${node}', '${kind}', '${status}', '["motd"]', 'o', 1700000030)`;
    const rows = [
      `insert into operations (operation_id, node_id, kind, status, modules, requested_by, created_at) values
        ${operation(1, 'apply', 'failed')}, ${operation(2, 'apply', 'cancelled')}, ${operation(3, 'plan', 'succeeded')}`,
      `insert into applied_resources values ('${node}', 'motd/g', 'motd', 'g', 'file-unix', '/g', '${id(1)}', 1700000030, 'unapplied', 'no')`,
    ];
    const statements = rows.map((text) => {
      const query = defineQuery('test/off', () => sql.raw(text));
      return statement(query, {});
    });
    await before.write({ name: 'test/off', statements });
    await before.close();
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { context } = domain;
    const off = async () => (await listReconcile(context, { limit: 9, offset: 0 }, createOffRanking(context))).items;
    expect(await off()).toMatchObject([
      {
        name: agentName,
        reasons: ['apply_failed', 'drifted', 'unapplied'],
        drift: [{ drift_id: drifted, accepted: null }],
        failed_operation: { operation_id: id(1), status: 'failed' },
        unapplied: 1,
        pending_removals: 0,
      },
    ]);
    await acceptDrift(context, { type: 'operator', id: 'cd'.repeat(16), name: 'ada' }, drifted, 'known');
    expect(await off()).toMatchObject([{ reasons: ['apply_failed', 'unapplied'] }]);
  });
});

describeDatabases('terminal sessions of a release without recordings', (fixture) => {
  const openTerminals = terminalsFixture();

  test('keeps terminal sessions across an upgrade, and marks open sessions as interrupted', async () => {
    const at = await fixture.newAddress();
    const old = await fixture.open({ at, migrations: migrations.slice(0, 11) });
    const id = (n: number) => `01HF7YAT00000000000000000${n}`;
    const rows = `('${id(1)}', 'n', 'o', 'closed', 1700000000, 1700000060), ('${id(2)}', 'n', 'o', 'active', 1700000000, null)`;
    const insert = defineQuery('test/terminals', () => sql.raw(`insert into terminal_sessions values ${rows}`));
    await old.write({ name: 'test/terminals', statements: [statement(insert, {})] });
    await old.close();
    const domain = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
    const { terminals } = await openTerminals(domain);
    await (await terminals.interruptLeftovers()).recorded;
    const nothing = { end_reason: null, transcript_path: null, transcript_sha256: null, transcript_bytes: null };
    expect(await terminals.get(id(1))).toMatchObject({ ...nothing, status: 'closed', closed_at: 1_700_000_060 });
    expect(await terminals.get(id(2))).toMatchObject({
      ...nothing,
      status: 'interrupted',
      end_reason: 'the orchestrator restarted',
      closed_at: domain.now(),
    });
  });
});

describeDatabases('rows of agents in a release that stored them in the order of enrollment', (fixture) => {
  test('keeps the state and the last acknowledged report of each agent across an upgrade', async () => {
    const at = await fixture.newAddress();
    const old = await fixture.open({ at, migrations: migrations.slice(0, 19) });
    const states = [
      { node_id: 'a', snapshot_operation_id: null, updated_at: 3, drift_due_at: null, failed_apply_id: 'failed' },
      { node_id: 'b', snapshot_operation_id: 'applied', updated_at: 1, drift_due_at: 2, failed_apply_id: null },
    ];
    const acknowledged = [
      { node_id: 'a', instance_id: 'first', seq: 1 },
      { node_id: 'b', instance_id: 'second', seq: 7 },
    ];
    const insert = defineQuery('test/states', (db) => db.insertInto('agent_state').values(states.toReversed()));
    const insertSpool = defineQuery('test/spool', (db) => db.insertInto('spool_ack').values(acknowledged.toReversed()));
    await old.write({ name: 'test/agents', statements: [statement(insert, {}), statement(insertSpool, {})] });
    await old.close();
    const db = await fixture.open({ at });
    const all = (table: 'agent_state' | 'spool_ack') =>
      db.all(
        defineQuery(`test/all of ${table}`, (query) => query.selectFrom(table).selectAll().orderBy('node_id')),
        {},
      );
    expect(await all('agent_state')).toEqual(states);
    expect(await all('spool_ack')).toEqual(acknowledged);
  });
});

describeDatabases('a process of an earlier release on an upgraded database', (fixture) => {
  test('lets a process of an earlier release register and read leases in an upgraded database', async () => {
    const at = await fixture.newAddress();
    const newer = await fixture.open({ at, migrations: migrations.slice(0, 33) });
    const takes = statement(takeLease, { name: 'drift-sweep', holder: 'newer', former: 0 });
    await newer.write({ name: 'test/take', statements: [takes] });
    await newer.close();
    const older = await fixture.open({ at, migrations: migrations.slice(0, 29) });
    await older.alone(insertReplica, { incarnation: 'older', name: 'older', version: '0', started_at: 0 });
    expect(await older.all(leaseStates, { names: ['drift-sweep'] })).toMatchObject([{ holder: 'newer', alive: null }]);
    await older.close();
    const next = await fixture.open({ at });
    expect(await next.all(otherReplicas, { incarnation: 'next' })).toMatchObject([{ name: 'older', draining: 0 }]);
  });
});
