import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, newKey, openDomain, reportsOf, resultOf } from '../../test/domain.ts';
import { awaitRun, getOperation, getRun } from '../../test/reading.ts';
import { startUpkeep } from '../schedule/upkeep.ts';
import { getAgent, setStatus } from './agents/agents.ts';
import { createToken } from './agents/enrollment.ts';
import { listTags, putOneTag, putTags } from './agents/tags.ts';
import { listAudit } from './audit/audit.ts';
import { submitDriftCheck } from './drift/drift.ts';
import { createAssignment } from './modules/assignments.ts';
import { listRevisions, uploadModule } from './modules/modules.ts';
import { cancelOperation } from './operation-end/cancellation.ts';
import { submitOperation } from './operations/operations.ts';
import { addOperator, removeOperator } from './operators/operators.ts';
import { hashOfToken } from './operators/sessions.ts';
import { createRunConductor } from './runs/run-conductor.ts';
import { startRun } from './runs/runs.ts';

/** Repeats attacks and races that succeeded against earlier versions. */

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );
const instance = '01'.repeat(16);
const advertised = { agents: 'x:1', publicKey: 'ab'.repeat(32) };
const fileModule = (name: string, path = `/tmp/${name}`, more = '') =>
  `name: ${name}\nsupports: [{ platform: linux }]\n${more}resources:\n  - resource: { file-unix: { path: ${path}, content: "x" } }\n`;

async function open(fixture: Parameters<Parameters<typeof describeDatabases>[1]>[0]) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await uploadModule(domain.context, actor, 'm', fileModule('m'));
  const submit = (kind: 'apply' | 'plan' = 'apply', ttl = 3600) =>
    submitOperation(domain.context, actor, 'web-1', { kind, modules: ['m'], ttl, queue: true });
  return { domain, actor, agent, submit, context: domain.context };
}

describeDatabases('hostile input', (fixture) => {
  test('accepts names of object prototype properties, such as `constructor`, as names and keys', async () => {
    const { domain, context, actor, agent } = await open(fixture);
    const parameters = 'parameters: { keys: { type: integer, default: 1 }, entries: { type: integer, default: 1 } }\n';
    await uploadModule(context, actor, 'constructor', fileModule('constructor', '/tmp/c', parameters));
    await putTags(context, actor, 'web-1', { constructor: 'a', toString: 'b', valueOf: 'c', hasOwnProperty: 'd' });
    await createAssignment(context, actor, {
      name: 'constructor',
      modules: ['constructor'],
      selector: 'constructor=a toString=b',
      parameters: { constructor: { keys: 5, entries: 1 } },
    });
    const id = await startRun(context, domain.conductor, actor, 'constructor', { kind: 'plan' });
    expect(Object.keys({ a: 1 })).toEqual(['a']);
    expect((await getRun(context, id)).results).toMatchObject([{ node_id: agent.id, status: 'queued' }]);
    expect((await listTags(context)).tags).toEqual({
      constructor: ['a'],
      hasOwnProperty: ['d'],
      toString: ['b'],
      valueOf: ['c'],
    });
  });

  test('records the end of an operation only once if the agent reports it twice', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const once = reportsOf(id, [resultOf()], { now: domain.now() });
    const twice = [...once, ...reportsOf(id, [], { now: domain.now(), status: 'failed' })];
    expect(await domain.links.reported(agent.id, instance, 1, twice)).toBeNull();
    expect(await getOperation(context, id)).toMatchObject({ status: 'succeeded', resources: [{}] });
    expect(await connect(domain, agent)).toMatchObject({ acknowledged: 1 });
  });

  test('limits how much an agent can store with one operation', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const large = resultOf({ diff: 'x'.repeat(60_000) });
    let seq = 0;
    for (let position = 0; position < 700; position += 100)
      await domain.links.reported(agent.id, instance, ++seq, [
        { type: 'results', operation_id: id, position, results: Array.from({ length: 100 }, () => large) },
      ]);
    const { resources } = await getOperation(context, id);
    expect(resources.length).toBe(700);
    expect(JSON.stringify(resources).length).toBeLessThan(34 * 1024 * 1024);
    expect(resources.at(-1)).toMatchObject({ diff: null, message: expect.stringContaining('left out') });
  });

  test('does not attribute events to an agent because its hostname equals another agent’s name', async () => {
    const { domain, context, agent } = await open(fixture);
    const stranger = await newKey();
    await connect(domain, stranger, { hostname: 'web-1' });
    const { events } = await listAudit(context, { agent: 'web-1', limit: 100 });
    expect(new Set(events.map(({ target }) => target.id))).toEqual(new Set([agent.id]));
    expect(events.map(({ event_type }) => event_type)).toContain('agent.pending');
    expect((await listAudit(context, { agent: 'nobody' })).events).toEqual([]);
    expect(await code(listAudit(context, { after: '2026-02-31T00:00:00Z' }))).toBe('invalid_input');
  });

  test('limits the number of tags per agent', async () => {
    const { context, actor } = await open(fixture);
    const tags = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`t${i}`, '']));
    expect(await code(putTags(context, actor, 'web-1', tags))).toBe('invalid_input');
    delete tags.t256;
    await putTags(context, actor, 'web-1', tags);
    expect(await code(putOneTag(context, actor, 'web-1', 'one-more', ''))).toBe('invalid_input');
    expect(await code(putOneTag(context, actor, 'web-1', 't0', 'changed'))).toBe('done');
  });
});

describeDatabases('races', (fixture) => {
  test('gives no session to an operator who is removed while signing in', async () => {
    const { domain, context, actor } = await open(fixture);
    for (let round = 0; round < 5; round++) {
      const eve = await newKey();
      await addOperator(context, actor, { public_key: eve.hex, username: `eve${round}x`, role: 'admin' });
      const { nonce } = await domain.signIn.challenge(eve.hex);
      const [token] = await Promise.all([
        domain.signIn.verify(eve.hex, eve.sign(Buffer.from(nonce, 'hex'))).then(
          (session) => session.token,
          () => null,
        ),
        removeOperator(context, actor, eve.id),
      ]);
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      if (token !== null) expect(await domain.signIn.find(hashOfToken(token))).toBeNull();
    }
  });

  test('allows two operators to set the same status concurrently', async () => {
    const { domain, context, actor } = await open(fixture);
    const key = await newKey();
    await connect(domain, key);
    const approve = () => code(setStatus(context, actor, key.id, { status: 'approved', name: 'web-9' }));
    expect(await Promise.all([approve(), approve(), approve()])).toEqual(['done', 'done', 'done']);
    const bob = await newKey();
    await addOperator(context, actor, { public_key: bob.hex, username: 'bob', role: 'operator' });
    const remove = () => code(removeOperator(context, actor, bob.id));
    expect(await Promise.all([remove(), remove()])).toEqual(['done', 'done']);
  });

  test('gives each of many concurrent uploads its own revision', async () => {
    const { context, actor } = await open(fixture);
    await Promise.all(Array.from({ length: 25 }, () => uploadModule(context, actor, 'm', fileModule('m'))));
    expect((await listRevisions(context, 'm', { limit: 99, offset: 0 })).items.length).toBe(26);
  });

  test('ends open operations in the transaction that rejects the agent', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await createAssignment(context, actor, { name: 'base', modules: ['m'], selector: 'role=web' });
    const [run, single, rejected] = await Promise.all([
      startRun(context, domain.conductor, actor, 'base', { kind: 'apply' }),
      submit().catch(() => null),
      setStatus(context, actor, agent.id, { status: 'rejected' }),
    ]);
    expect(rejected.status).toBe('rejected');
    const { run: ended } = await awaitRun(context, domain.waiting, run);
    expect(ended.status).not.toBe('running');
    expect(ended.results[0]?.status).not.toBe('queued');
    if (single !== null) expect((await getOperation(context, single)).status).toBe('cancelled');
    expect(await domain.links.agentsWithWork()).toEqual([]);
  });
});

describeDatabases('lost operations', (fixture) => {
  test('does not dispatch an operation that was canceled or has expired', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    const cancelled = await submit();
    await domain.links.nextOperation(agent.id);
    await cancelOperation(context, actor, cancelled);
    expect(await domain.links.nextOperation(agent.id)).toMatchObject({ operation: { operation_id: cancelled } });
    await connect(domain, agent);
    expect((await getOperation(context, cancelled)).status).toBe('cancelled');
    const late = await submit('apply', 60);
    await domain.links.nextOperation(agent.id);
    domain.clock.advance(61_000);
    await connect(domain, agent);
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    const upkeep = startUpkeep(context, domain.clock);
    await upkeep.round();
    await upkeep.stop();
    expect((await getOperation(context, late)).status).toBe('expired');
  });

  test('dispatches an operation again if the agent never received it', async () => {
    const { domain, agent, submit } = await open(fixture);
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    await connect(domain, agent);
    expect(await domain.links.nextOperation(agent.id)).toMatchObject({ operation: { operation_id: id } });
  });

  test('starts a recorded run in the next process if the first process dispatched no operation', async () => {
    const { domain, context, actor, agent } = await open(fixture);
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await createAssignment(context, actor, { name: 'base', modules: ['m'], selector: 'role=web' });
    // The process is killed after the run is recorded and before its first operations are enqueued.
    const write = context.db.write.bind(context.db);
    context.db.write = (unit) => (unit.name === 'runs/queue' ? Promise.reject(new Error('killed')) : write(unit));
    const id = await startRun(context, domain.conductor, actor, 'base', { kind: 'apply' });
    await domain.conductor.stop();
    context.db.write = write;
    expect(await getRun(context, id)).toMatchObject({ results: [{ status: 'queued', operation_id: null }] });
    // The gateway does not report disconnected agents at first, because they may be reconnecting.
    domain.connected.delete(agent.id);
    const next = createRunConductor(context, { maxConcurrent: 1000 });
    const upkeep = startUpkeep(context, domain.clock, { runs: next });
    await upkeep.round();
    expect(await getRun(context, id)).toMatchObject({ status: 'running', results: [{ status: 'queued' }] });
    domain.connected.add(agent.id);
    await upkeep.round();
    const operation_id = (await domain.links.nextOperation(agent.id))?.operation.operation_id ?? '';
    await domain.links.reported(agent.id, instance, 1, reportsOf(operation_id, [resultOf()], { now: domain.now() }));
    await upkeep.round();
    expect(await getRun(context, id)).toMatchObject({ status: 'succeeded', results: [{ operation_id }] });
    const { events } = await listAudit(context, { event_type: 'run.ended' });
    expect(events.map(({ target }) => target.id)).toEqual([id]);
    await upkeep.stop();
    await next.stop();
  });

  test('sends a drift check with the newest snapshot at the time of dispatch', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    const finish = async (seq: number) => {
      const next = await domain.links.nextOperation(agent.id);
      const id = next?.operation.operation_id ?? '';
      await domain.links.reported(agent.id, instance, seq, reportsOf(id, [resultOf()], { now: domain.now() }));
      return next?.operation;
    };
    await submit();
    await finish(1);
    const second = await submit();
    await submitDriftCheck(context, actor, 'web-1', 'operator');
    await finish(2);
    expect(await finish(3)).toMatchObject({ kind: 'drift', snapshot_operation_id: second });
  });
});

describeDatabases('enrolment', (fixture) => {
  test('assigns distinct names to machines cloned from one image', async () => {
    const { domain, context, actor } = await open(fixture);
    const { token } = await createToken(context, actor, { uses: 10 }, advertised);
    const names = new Set<string | null>();
    await newAgent(domain, actor, 'debian');
    for (const digits of [0, 4, 8]) {
      const key = await newKey();
      // Creates agents whose ids share prefixes, as happens among ten thousand agents.
      for (const length of [4, 8].filter((length) => length <= digits))
        await newAgent(domain, actor, `debian-${key.id.slice(0, length)}`);
      await connect(domain, key, { token, hostname: 'debian' });
      names.add((await getAgent(context, key.id)).name);
    }
    expect(names.size).toBe(3);
  });

  test('uses up a token that does not approve automatically only for new agents', async () => {
    const { domain, context, actor } = await open(fixture);
    const { token } = await createToken(context, actor, { uses: 2, approve: false, tags: { a: 'b' } }, advertised);
    const key = await newKey();
    for (let i = 0; i < 3; i++) await connect(domain, key, { token });
    await putTags(context, actor, key.id, { a: 'changed' });
    await connect(domain, key, { token });
    expect((await getAgent(context, key.id)).tags).toEqual({ a: 'changed' });
    expect(await connect(domain, await newKey(), { token })).toMatchObject({ admitted: true });
    expect(await connect(domain, await newKey(), { token })).toMatchObject({ admitted: false });
  });
});
