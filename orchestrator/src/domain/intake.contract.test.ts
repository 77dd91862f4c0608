import { MusterError, type ResourceResult, type Sample } from '@muster/protocol';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { type DatabaseFixture, describeDatabases } from '../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../test/domain.ts';
import { getOperation, getOutput, getState } from '../../test/reading.ts';
import { sampleAt } from '../../test/samples.ts';
import { OutcomeUnknown, withOverrides } from '../store/database.ts';
import { putUsage, usageOf } from '../store/queries/agents/agent-usage.ts';
import { defineQuery } from '../store/query.ts';
import { statement, type Unit } from '../store/transaction.ts';
import { createAgentLinks } from './agent-link/agent-link-service.ts';
import { maxEvents, maxHints } from './agents/agent-usage.ts';
import { listAudit } from './audit/audit.ts';
import { listDrift, submitDriftCheck } from './drift/drift.ts';
import { uploadModule } from './modules/modules.ts';
import { submitOperation } from './operations/operations.ts';

/** Tests that a compromised agent can store only reports about resources that it received, within its limits. */

const instance = '01'.repeat(16);
const mebibyte = 1024 * 1024;

const rowsOf = (table: 'operation_outputs' | 'applied_resources' | 'drift_records') =>
  defineQuery(`test/rows of ${table}`, (db) => db.selectFrom(table).select(sql<number>`count(*)`.as('count')));
const rows = {
  // A row contains one result per line.
  results: defineQuery('test/results', (db) =>
    db
      .selectFrom('operation_resources')
      .select(
        sql<number>`coalesce(sum(length(result) - length(replace(result, ${sql.lit('\n')}, '')) + 1), 0)`.as('count'),
      ),
  ),
  outputs: rowsOf('operation_outputs'),
  applied: rowsOf('applied_resources'),
  drift: rowsOf('drift_records'),
};

const asSent = (operation: OperationMessage, more: Partial<ResourceResult> = {}): ResourceResult[] =>
  operation.resources.map(({ module, id, type, identity }) => resultOf({ module, id, type, identity, ...more }));

async function opened(fixture: DatabaseFixture, { files = 3, dailyBytes = 256 * mebibyte } = {}) {
  const domain = await openDomain(fixture, { dailyBytes, comparesSent: true });
  const { context, links } = domain;
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  const resources = Array.from(
    { length: files },
    (_, i) => `  - resource: { file-unix: { path: /tmp/${i}, content: "x" } }\n`,
  );
  await uploadModule(
    context,
    actor,
    'm',
    `name: m\nsupports: [{ platform: linux }]\nresources:\n${resources.join('')}`,
  );
  let seq = 0;
  const report = (...reports: Report[]) => links.reported(agent.id, instance, ++seq, reports);
  const next = async (): Promise<OperationMessage> => {
    const sent = await links.nextOperation(agent.id);
    if (sent === null) throw new Error('nothing waits');
    return sent.operation;
  };
  const apply = async (kind: 'apply' | 'plan' = 'apply'): Promise<OperationMessage> => {
    await submitOperation(context, actor, 'web-1', { kind, modules: ['m'], ttl: 3600, queue: true });
    return next();
  };
  const results = (operation_id: string, position: number, given: ResourceResult[]) =>
    report({ type: 'results', operation_id, position, results: given });
  const output = (operation_id: string, resource: string, stdout = '') =>
    report({ type: 'output', operation_id, resource, stdout, stderr: '', exit_code: 0, truncated: false });
  const finish = (operation_id: string, given: ResourceResult[], status: 'succeeded' | 'failed' = 'succeeded') =>
    report(...reportsOf(operation_id, given, { now: domain.now(), status }));
  const count = async (of: keyof typeof rows) => Number((await domain.db.get(rows[of], {}))?.count);
  /** Records usage for the current day, as a previous process would have. */
  const hasUsed = (used: { events: number; hints: number }) => {
    const day = Math.floor(domain.now() / 86_400);
    const put = statement(putUsage, { node_id: agent.id, day, bytes: 0, limited: 0, ...used });
    return domain.db.write({ name: 'test/used', statements: [put] });
  };
  const events = async (event_type: string) => (await listAudit(context, { event_type, limit: 500 })).events;
  return { domain, context, links, actor, agent, report, next, apply, results, output, finish, count, events, hasUsed };
}

describeDatabases('reports of an operation', (fixture) => {
  test('accepts results for sent resources at their positions', async () => {
    const { context, apply, finish, count } = await opened(fixture);
    const operation = await apply();
    expect(await finish(operation.operation_id, asSent(operation))).toBeNull();
    expect(await getOperation(context, operation.operation_id)).toMatchObject({ status: 'succeeded' });
    expect(await count('results')).toBe(3);
    expect(await count('applied')).toBe(3);
  });

  test('refuses a result for a resource that was not in the operation', async () => {
    const { apply, results, count } = await opened(fixture);
    const { operation_id } = await apply();
    expect(await results(operation_id, 0, [resultOf({ identity: `/${'x'.repeat(4_000)}` })])).toMatchObject({
      code: 'protocol_violation',
      message: expect.stringContaining('which belongs to another resource'),
    });
    expect(await count('results')).toBe(0);
  });

  test('refuses a result at a wrong position', async () => {
    const { apply, results, count } = await opened(fixture);
    const operation = await apply();
    const [first] = asSent(operation);
    expect(await results(operation.operation_id, 2, [first!])).toMatchObject({ code: 'protocol_violation' });
    expect(await results(operation.operation_id, 3, [first!])).toMatchObject({
      message: expect.stringContaining('where only removals are allowed'),
    });
    expect(await count('results')).toBe(0);
  });

  test('refuses a result beyond the maximum number of removals', async () => {
    const { apply, results } = await opened(fixture);
    const { operation_id } = await apply();
    expect(await results(operation_id, 20_003, [resultOf()])).toMatchObject({
      message: expect.stringContaining('3 resources were sent'),
    });
  });

  test('refuses output for a resource that was not in the operation', async () => {
    const { apply, output, results, count } = await opened(fixture);
    const operation = await apply();
    const { operation_id } = operation;
    expect(await output(operation_id, `m/${'x'.repeat(4_000)}`)).toMatchObject({ code: 'protocol_violation' });
    expect(await output(operation_id, 'm//tmp/0', 'hello')).toBeNull();
    const removal = resultOf({ module: 'old', identity: '/old', action: 'remove' });
    expect(await output(operation_id, 'old//old')).toMatchObject({ code: 'protocol_violation' });
    expect(await results(operation_id, 3, [removal])).toBeNull();
    expect(await output(operation_id, 'old//old')).toBeNull();
    expect(await count('outputs')).toBe(2);
  });

  test('refuses reports on an operation that was not dispatched', async () => {
    const { context, actor, results } = await opened(fixture);
    const request = { kind: 'apply', modules: ['m'], ttl: 3600, queue: true } as const;
    const id = await submitOperation(context, actor, 'web-1', request);
    expect(await results(id, 0, [resultOf()])).toMatchObject({ message: expect.stringContaining('was not sent') });
  });

  test('does not add removed unknown resources to applied state', async () => {
    const { agent, context, actor, apply, finish, count, next } = await opened(fixture);
    const first = await apply();
    const failedRemoval = resultOf({
      identity: '/from/elsewhere',
      action: 'remove',
      status: 'failed',
      message: 'busy',
    });
    await finish(first.operation_id, [...asSent(first), failedRemoval], 'failed');
    expect(await count('applied')).toBe(3);
    expect((await getOperation(context, first.operation_id)).resources).toHaveLength(4);
    const other = '  - resource: { file-unix: { path: /n, content: "x" } }';
    await uploadModule(context, actor, 'n', `name: n\nsupports: [{ platform: linux }]\nresources:\n${other}\n`);
    const request = { kind: 'apply', modules: ['n'], ttl: 3600, queue: true } as const;
    await submitOperation(context, actor, agent.id, request);
    const second = await next();
    const removals = asSent(first, { action: 'remove', status: 'failed', message: 'x'.repeat(8_000) });
    expect(await finish(second.operation_id, [...asSent(second), ...removals], 'failed')).toBeNull();
    const { applied, pending_removals } = await getState(context, 'web-1');
    expect(applied.map(({ identity }) => identity)).toEqual(['/n']);
    // The reason is shortened for display; the operation contains the full message.
    expect(pending_removals.map(({ reason }) => reason?.length)).toEqual([1_000, 1_000, 1_000]);
  });

  test('limits the bytes stored for removals, because the agent chooses their names', async () => {
    const { apply, results, context } = await opened(fixture, { dailyBytes: 2 ** 40 });
    const { operation_id } = await apply();
    const named = (i: number) => resultOf({ action: 'remove', identity: `/${i}/${'x'.repeat(4_000)}` });
    // The names total 49 MiB.
    for (let at = 0; at < 12_000; at += 250)
      expect(
        await results(
          operation_id,
          3 + at,
          Array.from({ length: 250 }, (_, i) => named(at + i)),
        ),
      ).toBeNull();
    const bytes = JSON.stringify((await getOperation(context, operation_id)).resources).length;
    expect(bytes).toBeGreaterThan(32 * mebibyte);
    expect(bytes).toBeLessThan(40 * mebibyte);
  });
});

describeDatabases('daily limits of an agent', (fixture) => {
  test('drops details and output beyond the daily limit, and records one event', async () => {
    const { context, domain, agent, apply, results, output, finish, events } = await opened(fixture, {
      dailyBytes: mebibyte,
    });
    const operation = await apply();
    const { operation_id } = operation;
    for (let i = 0; i < 6; i++) expect(await output(operation_id, 'm//tmp/0', 'x'.repeat(250_000))).toBeNull();
    expect(await output(operation_id, 'm//tmp/1', 'lost')).toBeNull();
    const sent = asSent(operation, { diff: 'd'.repeat(60_000), message: 'this is why', status: 'failed' });
    expect(await results(operation_id, 0, sent)).toBeNull();
    expect(await finish(operation_id, asSent(operation), 'failed')).toBeNull();
    const { output: outputs } = await getOutput(context, domain.liveOutput, agent.id, operation_id);
    expect(outputs['m//tmp/1']).toMatchObject({ stdout: '', truncated: true });
    // An operation beyond the daily limit may store at most 64 KiB in total. This one has already stored more, so its
    // details are dropped.
    const ended = await getOperation(context, operation_id);
    expect(ended).toMatchObject({ status: 'failed', resources: [{}, {}, {}] });
    expect(await events('agent.limited')).toMatchObject([{ metadata: { what: 'bytes', limit: mebibyte } }]);
    const next = await apply();
    await results(next.operation_id, 0, asSent(next, { diff: 'd'.repeat(60_000), message: 'this is why' }));
    const { resources } = await getOperation(context, next.operation_id);
    expect(resources.map(({ diff }) => diff?.length ?? 0)).toEqual([60_000, 0, 0]);
    expect(resources[2]?.message).toContain('this is why (the details are left out: the agent had reached');
    expect(await finish(next.operation_id, asSent(next))).toBeNull();
    // The limits reset on the next day.
    domain.clock.advance(86_400_000);
    const later = await apply();
    await output(later.operation_id, 'm//tmp/1', 'kept');
    const found = await getOutput(context, domain.liveOutput, agent.id, later.operation_id);
    expect(found.output['m//tmp/1']).toMatchObject({ stdout: 'kept', truncated: false });
    expect(await events('agent.limited')).toHaveLength(1);
  });

  test('limits drift checks caused by hints, but not those that operators request', async () => {
    const { context, links, agent, actor, apply, finish, next, report, events, hasUsed } = await opened(fixture);
    await hasUsed({ events: 0, hints: maxHints - 5 });
    const operation = await apply();
    await finish(operation.operation_id, asSent(operation));
    let checks = 0;
    for (let i = 0; i < 10; i++) {
      await links.driftHinted(agent.id, ['path:/tmp/0']);
      const sent = await links.nextOperation(agent.id);
      if (sent === null) continue;
      checks++;
      await report(...reportsOf(sent.operation.operation_id, [], { now: 0 }));
    }
    expect(checks).toBe(5);
    expect(await events('agent.limited')).toMatchObject([{ metadata: { what: 'hints', limit: maxHints } }]);
    const checkId = await submitDriftCheck(context, actor, 'web-1', 'operator');
    expect((await next()).operation_id).toBe(checkId);
  });

  test('limits drift events, but records every check', async () => {
    const { context, actor, domain, apply, finish, next, events, count, hasUsed } = await opened(fixture);
    await hasUsed({ events: maxEvents - 10, hints: 0 });
    const operation = await apply();
    await finish(operation.operation_id, asSent(operation));
    const [first] = asSent(operation, { status: 'would_change', action: 'update' });
    for (let i = 0; i < 20; i++) {
      await submitDriftCheck(context, actor, 'web-1', 'watch');
      await finish((await next()).operation_id, i % 2 === 0 ? [first!] : []);
    }
    const driftEvents = [...(await events('drift.detected')), ...(await events('drift.resolved'))];
    expect(driftEvents).toHaveLength(10);
    expect(await events('agent.limited')).toMatchObject([{ metadata: { what: 'events', limit: maxEvents } }]);
    expect(await count('drift')).toBe(20);
    expect((await listDrift(context, 'web-1', { limit: 1, offset: 0 })).items[0]?.status).toBe('in_sync');
    domain.clock.advance(86_400_000);
    await submitDriftCheck(context, actor, 'web-1', 'watch');
    await finish((await next()).operation_id, [first!]);
    expect(await events('drift.detected')).toHaveLength(6);
  });

  test('limits events for new agent versions', async () => {
    const { domain, agent, events } = await opened(fixture);
    const before = (await events('agent.connected')).length;
    for (let i = 0; i < maxEvents + 10; i++) await connect(domain, agent, { agent_version: `0.${i}.0` });
    expect((await events('agent.connected')).length - before).toBe(maxEvents);
  });

  test('accepts results from a drift check only for applied resources', async () => {
    const { context, actor, apply, finish, next, results } = await opened(fixture);
    const operation = await apply();
    await finish(operation.operation_id, asSent(operation));
    await submitDriftCheck(context, actor, 'web-1', 'operator');
    const check = await next();
    const [, second] = asSent(operation, { status: 'would_change' });
    expect(await results(check.operation_id, 0, [second!])).toBeNull();
    expect(await results(check.operation_id, 3, [second!])).toMatchObject({ code: 'protocol_violation' });
    expect(await results(check.operation_id, 0, [resultOf()])).toMatchObject({
      message: expect.stringContaining('not part of the check'),
    });
  });
});

describeDatabases('reports while the disk is nearly full', (fixture) => {
  test('stores no details while disk space is low, and refuses all reports when almost none is free', async () => {
    const { context, domain, apply, results, output, finish, links, agent } = await opened(fixture);
    const operation = await apply();
    const { operation_id } = operation;
    domain.rules.space = 'low';
    expect(await output(operation_id, 'm//tmp/0', 'x'.repeat(250_000))).toBeNull();
    await results(operation_id, 0, asSent(operation, { diff: 'd'.repeat(60_000) }));
    await links.driftHinted(agent.id, ['path:/tmp/0']);
    domain.rules.space = 'spent';
    expect(await finish(operation_id, asSent(operation))).toMatchObject({ code: 'unavailable', retry_after_secs: 60 });
    expect((await getOperation(context, operation_id)).status).toBe('queued');
    domain.rules.space = 'low';
    expect(await finish(operation_id, asSent(operation))).toBeNull();
    expect((await getOperation(context, operation_id)).status).toBe('succeeded');
    const { output: outputs } = await getOutput(context, domain.liveOutput, agent.id, operation_id);
    expect(outputs['m//tmp/0']).toMatchObject({ stdout: '', truncated: true });
    await links.driftHinted(agent.id, ['path:/tmp/0']);
    expect(await links.nextOperation(agent.id)).toBeNull();
  });
});

describeDatabases('samples of an agent', (fixture) => {
  test('counts samples toward the daily limit, and drops samples beyond it', async () => {
    const { domain, context, agent, events } = await opened(fixture);
    const stored: Sample[] = [];
    const links = createAgentLinks(
      context,
      domain.refusals,
      domain.pending,
      async (_, samples) => void stored.push(...samples),
      domain.liveOutput,
      { dailyBytes: 20_000, space: 'ample' },
    );
    for (let at = 0; at < 10; at++)
      await links.sampled(
        agent.id,
        Array.from({ length: 48 }, (_, second) => sampleAt(at * 48 + second)),
      );
    expect(stored).toHaveLength(3 * 48);
    const limited = { metadata: { what: 'bytes', limit: 20_000 }, target: { name: 'web-1' } };
    expect(await events('agent.limited')).toMatchObject([limited]);
    // Reports count toward the same limit.
    expect(await domain.db.get(usageOf, { node_id: agent.id })).toMatchObject({ bytes: 3 * 48 * 160 });
  });
});

describeDatabases('the event of a daily limit', (fixture) => {
  const samples = Array.from({ length: 48 }, (_, second) => sampleAt(second));
  const samplesBytes = samples.length * 160;

  /** Returns the agent links of another process on the same database, and a function that returns its events. */
  async function withLinks(dailyBytes: number) {
    const { domain, context, agent, events } = await opened(fixture);
    const rules = { dailyBytes, space: 'ample' as const };
    const started = (db = context.db) =>
      createAgentLinks({ ...context, db }, domain.refusals, domain.pending, async () => {}, domain.liveOutput, rules);
    const limited = async () => (await events('agent.limited')).map(({ metadata }) => metadata.what);
    return { domain, context, agent, rules, started, limited };
  }

  test('records one event when concurrent transactions exceed the limit together', async () => {
    const { agent, started, limited } = await withLinks(3 * samplesBytes - 1);
    const links = started();
    await Promise.all([1, 2, 3].map(() => links.sampled(agent.id, samples)));
    await links.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
  });

  test('records one event when each of several concurrent transactions exceeds the limit', async () => {
    const { agent, started, limited } = await withLinks(1);
    const links = started();
    await Promise.all([1, 2, 3].map(() => links.sampled(agent.id, samples)));
    expect(await limited()).toEqual(['bytes']);
  });

  test('records an exceeded daily limit once a day, even if the orchestrator restarts or the limit changes', async () => {
    const { domain, agent, started, limited, rules } = await withLinks(samplesBytes);
    await started().sampled(agent.id, samples);
    const restarted = started();
    await restarted.sampled(agent.id, samples);
    rules.dailyBytes = 2 * samplesBytes;
    await restarted.sampled(agent.id, samples);
    await started().sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
    domain.clock.advance(86_400_000);
    await restarted.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
    await restarted.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes', 'bytes']);
  });

  test('records the event when the limit is lowered below the current usage', async () => {
    const { agent, started, limited, rules } = await withLinks(2 * samplesBytes);
    const links = started();
    await links.sampled(agent.id, samples);
    rules.dailyBytes = 1;
    await links.sampled(agent.id, samples);
    await links.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
  });

  test.each([
    ['its first attempt was not committed', new MusterError('storage_unavailable')],
    ['the outcome of its uncommitted first attempt was unknown', new OutcomeUnknown('test', 'the link broke')],
  ])('records the event with the next transaction when %s', async (_, failure) => {
    const { context, agent, started, limited } = await withLinks(samplesBytes);
    let fails = true;
    const write = (unit: Unit) => {
      if (!fails) return context.db.write(unit);
      fails = false;
      return Promise.reject(failure);
    };
    const links = started(withOverrides(context.db, { write }));
    await expect(links.sampled(agent.id, samples)).rejects.toBe(failure);
    expect(await limited()).toEqual([]);
    await links.sampled(agent.id, samples);
    await links.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
  });

  test('records the event once when the outcome of its commit is unknown', async () => {
    const { context, agent, started, limited } = await withLinks(samplesBytes);
    let fails = true;
    const write = async (unit: Unit) => {
      const result = await context.db.write(unit);
      if (!fails) return result;
      fails = false;
      throw new OutcomeUnknown('test', 'the link broke');
    };
    const links = started(withOverrides(context.db, { write }));
    await expect(links.sampled(agent.id, samples)).rejects.toBeInstanceOf(OutcomeUnknown);
    await links.sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
  });

  test('records the event only once if an earlier transaction commits later', async () => {
    const { domain, agent, started, limited } = await withLinks(samplesBytes);
    await started().sampled(agent.id, samples);
    const day = Math.floor(domain.now() / 86_400);
    const late = statement(putUsage, { node_id: agent.id, day, bytes: 1, events: 1, hints: 0, limited: 0 });
    await domain.db.write({ name: 'test/late', statements: [late] });
    expect(await domain.db.get(usageOf, { node_id: agent.id })).toMatchObject({ bytes: samplesBytes, events: 1 });
    await started().sampled(agent.id, samples);
    expect(await limited()).toEqual(['bytes']);
  });
});
