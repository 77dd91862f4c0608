import type { ResourceResult } from '@muster/protocol';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { getOperation, getState } from '../../../test/reading.ts';
import { bind, defineQuery } from '../../store/query.ts';
import { deletePayloads } from '../../store/retention.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { latestDrift, listLatestDrift, submitDriftCheck } from '../drift/drift.ts';
import { encodePayload } from '../modules/desired-set.ts';
import { uploadModule } from '../modules/modules.ts';
import { listOperations, submitOperation } from '../operations/operations.ts';
import { keepPayload } from '../operations/payloads.ts';
import { pruneHistory, prunePayloads } from './retention.ts';

const payloads = defineQuery('payloads', (db) => db.selectFrom('operation_payloads').select('digest'));
const resources = defineQuery('resources', (db) => db.selectFrom('operation_resources').select('operation_id'));
const losePayloads = defineQuery('lose payloads', (db) => db.deleteFrom('operation_payloads'));
const dayMs = 86_400_000;

describeAnyDatabase('retention', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const agent = await newAgent(domain, actor, 'web-1');
    let seq = 0;
    const upload = (content: string) =>
      uploadModule(
        domain.context,
        actor,
        'm',
        `name: m\nsupports: [{ platform: linux }]\nresources: [{ id: f, resource: { file-unix: { path: /f, content: "${content}" } } }]\n`,
      );
    const submit = (kind: 'apply' | 'plan' = 'apply', ttl = 3600) =>
      submitOperation(domain.context, actor, 'web-1', { kind, modules: ['m'], ttl, queue: true });
    const report = (id: string, status: ResourceResult['status'] = 'changed') =>
      domain.links.reported(
        agent.id,
        '01'.repeat(16),
        ++seq,
        reportsOf(id, [resultOf({ module: 'm', id: 'f', identity: '/f', status })], { now: domain.now() }),
      );
    const execute = async (id: string) => {
      await domain.links.nextOperation(agent.id);
      await report(id);
      return id;
    };
    const check = async (drifted: boolean) => {
      const id = await submitDriftCheck(domain.context, actor, 'web-1', 'operator');
      await domain.links.nextOperation(agent.id);
      await report(id, drifted ? 'would_change' : 'unchanged');
      return id;
    };
    const payloadCount = async () => (await domain.db.all(payloads, {})).length;
    return {
      domain,
      context: domain.context,
      actor,
      agent,
      upload,
      submit,
      execute,
      check,
      held: payloadCount,
    };
  };

  test('keeps a payload while it is needed, and for one more day', async () => {
    const { context, domain, upload, submit, execute, held } = await open();
    await upload('one');
    await execute(await submit());
    await upload('two');
    // The operation stays queued longer than the clock advances in this test.
    const second = await submit('apply', 40 * 86_400);
    expect(await held()).toBe(2);
    await prunePayloads(context);
    expect(await held()).toBe(2);
    // The drift snapshot and the payload of the queued operation are kept regardless of age.
    domain.clock.advance(30 * dayMs);
    await prunePayloads(context);
    expect(await held()).toBe(2);
    await execute(second);
    await prunePayloads(context);
    expect(await held()).toBe(1);
    domain.clock.advance(30 * dayMs);
    await prunePayloads(context);
    expect(await held()).toBe(1);
    // For a day, an apply that is bound to the plan may need its payload.
    await upload('three');
    await execute(await submit('plan'));
    await prunePayloads(context);
    expect(await held()).toBe(2);
    domain.clock.advance(dayMs);
    await prunePayloads(context);
    expect(await held()).toBe(1);
    // A new request stores the payload again.
    await execute(await submit());
    expect(await held()).toBe(2);
  });

  test('ends an operation whose payload was deleted, and continues with the next operation', async () => {
    const { context, domain, upload, submit, execute, agent } = await open();
    await upload('one');
    const lost = await submit();
    await context.db.write({ name: 'test/lose', statements: [statement(losePayloads, {})] });
    await upload('two');
    const next = await submit();
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(next);
    expect(await getOperation(context, lost)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('no longer stored'),
    });
    await execute(next);
  });

  if (fixture.kind === 'postgres')
    test('does not delete a payload that a concurrent operation needs', async () => {
      const at = await fixture.newAddress();
      const { context } = await openDomain({ ...fixture, open: () => fixture.open({ at }) });
      const payload = encodePayload({ resources: [], keep_modules: [] });
      await context.db.write({ name: 'test/keep', statements: keepPayload(payload) });
      const [asking, deleting] = await Promise.all(
        [1, 2].map(async () => {
          const client = new Client({ connectionString: at });
          await client.connect();
          await client.query('begin isolation level serializable');
          return client;
        }),
      );
      const run = (client: Client, { query, params }: Statement) =>
        client.query(
          query.compiled('postgres').sql,
          bind(query, 'postgres', params, (list) => [...list] as string[]),
        );
      for (const statement of keepPayload(payload)) await run(asking!, statement);
      await run(deleting!, statement(deletePayloads, { digests: [payload.digest], since: 0 }));
      await asking!.query(
        `insert into operations (operation_id, node_id, kind, status, modules, requested_by, created_at, payload_digest)
         values ('o', 'n', 'apply', 'queued', '[]', 'x', 1, $1)`,
        [payload.digest],
      );
      const ends = [];
      for (const client of [deleting!, asking!]) {
        ends.push(
          await client.query('commit').then(
            () => 'committed',
            (error: { code: string }) => error.code,
          ),
        );
        await client.end();
      }
      expect(ends).toEqual(['committed', '40001']);
    });

  test('deletes drift records by age, and an agent’s drift state with its last record', async () => {
    const { context, domain, upload, submit, execute, check } = await open();
    await upload('one');
    await execute(await submit());
    await check(true);
    domain.clock.advance(10 * dayMs);
    const newer = await check(false);
    const latest = async () =>
      (await listLatestDrift(context, { limit: 9, offset: 0 })).items.map(({ drift_id }) => drift_id);
    await pruneHistory(context, { driftDays: 0, operationDays: 0 });
    await pruneHistory(context, { driftDays: 10, operationDays: 0 });
    expect(await latest()).toEqual([newer]);
    expect((await latestDrift(context, 'web-1'))?.drift_id).toBe(newer);
    domain.clock.advance(10 * dayMs + 1000);
    await pruneHistory(context, { driftDays: 10, operationDays: 0 });
    expect(await latest()).toEqual([]);
    expect(await latestDrift(context, 'web-1')).toBeNull();
  });

  test('deletes ended operations by age, unless the applied state refers to them', async () => {
    const { context, domain, upload, submit, execute } = await open();
    await upload('one');
    const applied = await execute(await submit());
    const planned = await execute(await submit('plan'));
    const open1 = await submit('plan');
    domain.clock.advance(30 * dayMs + 1000);
    const recent = await submit('plan');
    const left = async () => (await listOperations(context, {})).operations.map(({ operation_id }) => operation_id);
    await pruneHistory(context, { driftDays: 0, operationDays: 0 });
    expect((await left()).length).toBe(4);
    await pruneHistory(context, { driftDays: 0, operationDays: 30 });
    expect(await left()).toEqual([recent, open1, applied]);
    expect((await domain.db.all(resources, {})).map(({ operation_id }) => operation_id)).toEqual([applied]);
    expect((await getState(context, 'web-1')).snapshot_operation_id).toBe(applied);
    expect((await getOperation(context, applied)).resources).toHaveLength(1);
    expect(planned).not.toBe(applied);
  });

  test('deletes records in several batches', async () => {
    const { context, domain, upload, submit, execute } = await open();
    await upload('one');
    for (let i = 0; i < 205; i++) await execute(await submit('plan'));
    domain.clock.advance(31 * dayMs);
    await pruneHistory(context, { driftDays: 0, operationDays: 30 });
    expect((await listOperations(context, {})).operations).toEqual([]);
  });
});
