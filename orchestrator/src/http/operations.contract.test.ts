import { expect, test, vi } from 'vitest';
import { bearer, testApp, tokens } from '../../test/app-fixture.ts';
import { type DatabaseFixture, describeAnyDatabase } from '../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../test/domain.ts';
import { setStatus } from '../domain/agents/agents.ts';
import { putOneTag } from '../domain/agents/tags.ts';
import { createAssignment, removeAssignment } from '../domain/modules/assignments.ts';
import { removeModule, uploadModule } from '../domain/modules/modules.ts';
import { startUpkeep } from '../schedule/upkeep.ts';
import { withOverrides } from '../store/database.ts';
import { openOperations } from '../store/queries/operations/operations.ts';
import { insertSession } from '../store/queries/sessions.ts';
import { statement } from '../store/transaction.ts';
import { operationHandlers } from './routes/operations.ts';
import { runHandlers } from './routes/runs.ts';
import { stateHandlers } from './routes/state.ts';
import { hashToken } from './server/authentication.ts';

const moduleText =
  'name: m\nsupports: [{ platform: linux }]\nresources: [{ id: f, resource: { file-unix: { path: /f, content: x } } }]\n';

async function open(fixture: DatabaseFixture) {
  const domain = await openDomain(fixture);
  const { context } = domain;
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await putOneTag(context, actor, 'web-1', 'role', 'web');
  await uploadModule(context, actor, 'm', moduleText);
  await createAssignment(context, actor, { name: 'base', modules: ['m'], selector: 'role=web' });
  // Each write verifies in the database that the session exists.
  const session = {
    operator_id: actor.id,
    username: actor.name,
    role: 'operator' as const,
    token_hash: hashToken(tokens.operator),
  };
  await context.db.write({
    name: 'test/session',
    statements: [
      statement(insertSession, {
        ...{ token_hash: session.token_hash, operator_id: actor.id, signed_in_at: 0, created_at: 0 },
        expires_at: 2 ** 40,
        bound: 1,
        ...{ session_id: 's', kind: 'token', last_used_at: null, user_agent: null, address: null },
      }),
    ],
  });
  const handlers = {
    ...operationHandlers(context, domain.waiting, domain.liveOutput),
    ...runHandlers(context, domain.waiting, domain.conductor),
    ...stateHandlers(context),
  };
  const app = testApp(handlers, { sessions: { find: (hash) => (hash === session.token_hash ? session : null) } });
  const ask = async (method: 'GET' | 'POST', url: string, payload?: object, later = false) => {
    const answer = await app.inject({
      method,
      url: url.startsWith('/api/') ? url : `/api/v1${url}`,
      headers: { ...bearer('operator'), ...(later ? { prefer: 'respond-async' } : {}) },
      ...(payload === undefined ? {} : { payload }),
    });
    return { status: answer.statusCode, body: answer.json(), location: answer.headers.location as string };
  };
  let seq = 0;
  /** Waits until an operation is dispatched to the agent, and then reports its results. */
  const execute = async (more: object = {}, results = [resultOf()]) => {
    const next = await vi.waitFor(async () => {
      const handed = await domain.links.nextOperation(agent.id);
      if (!handed) throw new Error('nothing yet');
      return handed.operation;
    });
    const reports = reportsOf(next.operation_id, results, { now: domain.now() });
    await domain.links.reported(
      agent.id,
      '01'.repeat(16),
      ++seq,
      reports.map((report) => (report.type === 'finished' ? { ...report, ...more } : report)),
    );
    return next;
  };
  return { domain, context, actor, agent, ask, execute };
}

describeAnyDatabase('operations over HTTP', (fixture) => {
  test('waits for operations, or returns their URL immediately', async () => {
    const { ask, execute } = await open(fixture);
    const waited = ask('POST', '/agents/web-1/apply', { modules: ['m'] });
    await execute();
    expect(await waited).toMatchObject({ status: 200, body: { status: 'succeeded', resources: [{}] } });
    const failed = ask('POST', '/agents/web-1/plan', { modules: ['m'] });
    await execute({ status: 'failed', error: 'no' });
    expect(await failed).toMatchObject({ status: 200, body: { kind: 'plan', status: 'failed', error: 'no' } });
    const later = await ask('POST', '/agents/web-1/apply', { modules: ['m'] }, true);
    expect(later).toMatchObject({ status: 202, body: { status: 'queued', resources: [] } });
    expect(later.location).toBe(`/api/v1/state/operations/${later.body.operation_id}`);
    await execute();
    expect((await ask('GET', later.location)).body).toMatchObject({ status: 'succeeded' });
    const run = await ask('POST', '/assignments/base/apply', undefined, true);
    expect(run).toMatchObject({ status: 202, body: { status: 'running', results: [{ status: 'queued' }] } });
    await execute();
    await vi.waitFor(async () => expect((await ask('GET', run.location)).body.status).toBe('succeeded'));
  });

  test('answers that the outcome is unknown if the database closes between the commit and the answer', async () => {
    const at = await fixture.newAddress();
    const { context, ask, agent } = await open({ ...fixture, open: () => fixture.open({ at }) });
    const { db } = context;
    const write: typeof db.write = async (unit) => {
      const result = await db.write(unit);
      void db.close();
      return result;
    };
    Object.assign(context, { db: withOverrides(db, { write }) });
    const queued = await ask('POST', '/agents/web-1/apply', { modules: ['m'] }, true);
    expect(queued).toMatchObject({ status: 503, body: { code: 'outcome_unknown' } });
    // A request that finds the database closed changes nothing.
    const refused = await ask('POST', '/agents/web-1/apply', { modules: ['m'] }, true);
    expect(refused).toMatchObject({ status: 503, body: { code: 'draining' } });
    expect(await (await fixture.open({ at })).all(openOperations, { node_id: agent.id })).toHaveLength(1);
  });

  test('refuses operations for a disconnected agent unless they may wait until they expire', async () => {
    const { domain, context, agent, ask } = await open(fixture);
    domain.connected.delete(agent.id);
    expect(await ask('POST', '/agents/web-1/apply', { modules: [] })).toMatchObject({
      status: 504,
      body: { code: 'agent_not_connected' },
    });
    expect(await ask('POST', '/agents/web-1/apply', { modules: [], offline: 'report' }, true)).toMatchObject({
      status: 504,
      body: { code: 'agent_not_connected' },
    });
    const { location } = await ask('POST', '/agents/web-1/apply', { modules: [], ttl: 60 }, true);
    const upkeep = startUpkeep(context, domain.clock);
    domain.clock.advance(61_000);
    await upkeep.round();
    expect((await ask('GET', location)).body).toMatchObject({ status: 'expired', error: expect.any(String) });
    expect((await ask('GET', '/state/operations?status=expired&agent=web-1&kind=apply')).body).toMatchObject({
      operations: [{ status: 'expired' }],
      limit: 50,
      offset: 0,
      has_more: false,
      next_cursor: null,
    });
    await upkeep.stop();
  });

  test('interrupts operations of which a reconnecting agent has no record', async () => {
    const { domain, agent, ask } = await open(fixture);
    const { location } = await ask('POST', '/agents/web-1/apply', { modules: [] }, true);
    const handed = await domain.links.nextOperation(agent.id);
    const accepted = { type: 'accepted' as const, operation_id: handed!.operation.operation_id };
    await domain.links.reported(agent.id, '01'.repeat(16), 1, [accepted]);
    expect((await ask('GET', location)).body).toMatchObject({ status: 'running' });
    await connect(domain, agent);
    expect((await ask('GET', location)).body).toMatchObject({ status: 'interrupted', finished_at: domain.now() });
  });

  test('cancels an operation once, and refuses a second cancellation', async () => {
    const { ask, execute } = await open(fixture);
    const { body } = await ask('POST', '/agents/web-1/apply', { modules: [] }, true);
    const cancel = `/state/operations/${body.operation_id}/cancel`;
    expect(await ask('POST', cancel)).toMatchObject({ status: 202, body: { status: 'cancelled' } });
    expect(await ask('POST', cancel)).toMatchObject({ status: 409, body: { code: 'operation_finished' } });
    expect((await ask('POST', '/state/operations/x/cancel')).status).toBe(404);
    const run = await ask('POST', '/assignments/base/plan', {}, true);
    expect(await ask('POST', `/runs/${run.body.run_id}/cancel`)).toMatchObject({
      status: 200,
      body: { status: 'cancelled', results: [{ status: 'cancelled' }] },
    });
    expect(await ask('POST', `/runs/${run.body.run_id}/cancel`)).toMatchObject({
      status: 409,
      body: { code: 'run_finished' },
    });
    const second = await ask('POST', '/assignments/base/plan', {}, true);
    const handed = execute();
    await handed;
    await vi.waitFor(async () => expect((await ask('GET', second.location)).body.status).toBe('succeeded'));
  });

  test('reports a stale plan in the response or as the outcome of the operation', async () => {
    const { domain, context, actor, ask, execute } = await open(fixture);
    const planned = await ask('POST', '/agents/web-1/plan', { modules: ['m'] }, true);
    await execute({ plan_digest: 'ab'.repeat(32) });
    const plan_id = planned.body.operation_id;
    const planned_at = planned.body.created_at;
    domain.clock.advance(60_000);
    const stale = { status: 'failed', error: 'plan_stale: the machine is not as it was' };
    const waited = ask('POST', '/agents/web-1/apply', { modules: [], plan_id });
    expect(await execute(stale, [])).toMatchObject({ plan_digest: 'ab'.repeat(32) });
    const detail = 'the machine is not as it was';
    expect(await waited).toMatchObject({ status: 409, body: { code: 'plan_stale', detail, planned_at } });
    const later = await ask('POST', '/agents/web-1/apply', { modules: [], plan_id }, true);
    await execute(stale, []);
    expect((await ask('GET', later.location)).body).toMatchObject({ plan_id, ...stale });
    const planRun = await ask('POST', '/assignments/base/plan', {}, true);
    const early = await ask('POST', '/assignments/base/apply', { plan_run_id: planRun.body.run_id });
    expect(early).toMatchObject({ status: 409, body: { code: 'plan_stale', planned_at: planRun.body.started_at } });
    for (const change of [
      () => uploadModule(context, actor, 'm', moduleText.replace('content: x', 'content: y')),
      () => removeAssignment(context, actor, 'base'),
      () => removeModule(context, actor, 'm'),
    ]) {
      await change();
      const refused = await ask('POST', '/agents/web-1/apply', { modules: [], plan_id });
      expect(refused).toMatchObject({ status: 409, body: { code: 'plan_stale', planned_at } });
    }
  });

  test('lists operations for one agent or all agents, by offset and by cursor', async () => {
    const { ask } = await open(fixture);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++)
      ids.unshift((await ask('POST', '/agents/web-1/plan', { modules: [] }, true)).body.operation_id);
    const first = (await ask('GET', '/agents/web-1/state/operations?limit=2')).body;
    expect(first).toMatchObject({ operations: [{ operation_id: ids[0] }, { operation_id: ids[1] }], has_more: true });
    expect(first.operations[0]).not.toHaveProperty('resources');
    const second = (await ask('GET', `/state/operations?limit=2&cursor=${first.next_cursor}`)).body;
    expect(second).toMatchObject({ operations: [{ operation_id: ids[2] }], has_more: false, next_cursor: null });
    expect((await ask('GET', '/state/operations?limit=0')).body).toMatchObject({ operations: [], has_more: false });
    expect((await ask('GET', '/state/operations?limit=501')).body.limit).toBe(500);
    expect((await ask('GET', '/state/operations?offset=2')).body.operations).toHaveLength(1);
    for (const query of ['limit=-1', 'limit=x', 'status=odd', 'kind=drift', 'cursor=x', 'colour=red'])
      expect((await ask('GET', `/state/operations?${query}`)).status, query).toBe(400);
    expect((await ask('GET', '/agents/nobody/state/operations')).status).toBe(404);
  });

  test('reports errors in the request before a missing agent, and a missing agent before an agent in the wrong state', async () => {
    const { context, actor, agent, ask } = await open(fixture);
    for (const body of [
      { modules: 'm' },
      { modules: [], plan_id: 7 },
      { modules: [], ttl: 0 },
      { modules: [], batch: 1 },
    ])
      expect((await ask('POST', '/agents/nobody/apply', body)).status, JSON.stringify(body)).toBe(400);
    for (const body of [
      { batch: 0 },
      { batch: '0%' },
      { batch: '101%' },
      { batch: '5' },
      { canary: 0 },
      { max_failures: -1 },
      { offline: 'x' },
    ])
      expect((await ask('POST', '/assignments/nothing/apply', body)).status, JSON.stringify(body)).toBe(400);
    expect((await ask('POST', '/assignments/nothing/apply')).status).toBe(404);
    expect((await ask('POST', '/agents/nobody/apply', { modules: [] })).status).toBe(404);
    expect(await ask('POST', '/agents/web-1/apply', { modules: ['nothing'] })).toMatchObject({ status: 404 });
    await setStatus(context, actor, agent.id, { status: 'rejected' });
    expect(await ask('POST', `/agents/${agent.id}/apply`, { modules: [] })).toMatchObject({
      status: 409,
      body: { code: 'agent_not_approved' },
    });
  });
});
