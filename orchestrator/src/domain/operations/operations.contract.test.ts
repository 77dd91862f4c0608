import { MusterError, type ResourceResult as Result } from '@muster/protocol';
import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, type Domain, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { awaitRun, getOperation, getOutput, getRun, getState, wholeOperation } from '../../../test/reading.ts';
import { startUpkeep } from '../../schedule/upkeep.ts';
import { toJson } from '../../store/json-text.ts';
import { putResourceResults } from '../../store/queries/operation-results.ts';
import { defineQuery } from '../../store/query.ts';
import { statement } from '../../store/transaction.ts';
import { removeAgent, setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { checkDrift, getDrift, latestDrift, listDrift, submitDriftCheck } from '../drift/drift.ts';
import {
  type AssignmentChange,
  createAssignment,
  getAssignment,
  listAssignments,
  removeAssignment,
  requireAssignment,
  updateAssignment,
} from '../modules/assignments.ts';
import { getModule, listModules, listRevisions, removeModule, uploadModule } from '../modules/modules.ts';
import { cancelOperation } from '../operation-end/cancellation.ts';
import { listRuns, startRun } from '../runs/runs.ts';
import type { Actor, Context } from '../shared/context.ts';
import { awaitOperation, listOperations, submitOperation } from './operations.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const motd = (text: string, path = '/etc/motd', name = 'motd') => `name: ${name}
supports: [{ platform: linux }]
resources:
  - id: motd
    resource: { file-unix: { path: ${path}, content: ${JSON.stringify(text)} } }
`;

const instance = '01'.repeat(16);

async function open(fixture: Parameters<Parameters<typeof describeAnyDatabase>[1]>[0]) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await uploadModule(domain.context, actor, 'motd', motd('hi\n'));
  const submit = (kind: 'apply' | 'plan' = 'apply', more: { modules?: string[]; queue?: boolean; ttl?: number } = {}) =>
    submitOperation(domain.context, actor, 'web-1', {
      kind,
      modules: ['motd'],
      queue: false,
      ...more,
    });
  let seq = 0;
  const report = (reports: Parameters<Domain['links']['reported']>[3]) =>
    domain.links.reported(agent.id, instance, ++seq, reports);
  return { domain, actor, agent, submit, report, context: domain.context };
}

/** Runs one operation, acting as both the gateway and the agent. */
async function execute(
  { domain, agent, report }: Awaited<ReturnType<typeof open>>,
  results = [resultOf()],
  status: 'succeeded' | 'failed' | 'cancelled' = 'succeeded',
) {
  const message = (await domain.links.nextOperation(agent.id))?.operation;
  if (!message) throw new Error('there is no operation to carry out');
  await report(reportsOf(message.operation_id, results, { now: domain.now(), status }));
  return message;
}

describeAnyDatabase('operations', (fixture) => {
  test('processes an operation from request to result', async () => {
    const all = await open(fixture);
    const { domain, context, agent, submit } = all;
    const id = await submit();
    const answer = awaitOperation(context, domain.waiting, id);
    const message = await execute(all);
    expect(message).toMatchObject({
      type: 'operation',
      operation_id: id,
      kind: 'apply',
      modules: ['motd'],
      keep_modules: [],
      resources: [{ key: 'path:/etc/motd', type: 'file-unix', body: { path: '/etc/motd', content: 'hi\n' } }],
    });
    const { operation, ended } = await answer;
    expect(ended).toBe(true);
    expect(await wholeOperation(operation)).toMatchObject({
      status: 'succeeded',
      started_at: domain.now(),
      finished_at: domain.now(),
      summary: { total: 1, changed: 1 },
      resources: [{ identity: '/etc/motd', status: 'changed' }],
    });
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    expect(await getState(context, 'web-1')).toMatchObject({
      applied: [{ identity: '/etc/motd', operation_id: id, reason: null }],
      pending_removals: [],
      unapplied: [],
      snapshot_operation_id: id,
    });
    const { events } = await listAudit(context, { category: 'state' });
    expect(events.map(({ event_type }) => event_type)).toEqual(['state.applied', 'state.requested']);
  });

  test('refuses invalid requests without writing to the database', async () => {
    const { domain, context, actor, submit, agent } = await open(fixture);
    expect(await code(submit('apply', { modules: ['nothing'] }))).toBe('module_not_found');
    await uploadModule(context, actor, 'windows', 'name: windows\nsupports: [{ platform: windows }]\n');
    expect(await code(submit('apply', { modules: ['windows'] }))).toBe('module_unresolved');
    await uploadModule(context, actor, 'other', motd('bye\n', '/etc/motd', 'other'));
    expect(await code(submit('apply', { modules: ['motd', 'other'] }))).toBe('module_conflict');
    const secret =
      'name: s\nsupports: [{ platform: linux }]\nresources:\n  - resource: { file-unix: { path: /k, content: "${{ secrets.x }}" } }\n';
    await uploadModule(context, actor, 's', secret);
    expect(await code(submit('apply', { modules: ['s'] }))).toBe('module_unresolved');
    domain.connected.delete(agent.id);
    expect(await code(submit())).toBe('agent_not_connected');
    await setStatus(context, actor, agent.id, { status: 'rejected' });
    const byId = { kind: 'apply', modules: ['motd'], queue: true } as const;
    expect(await code(submitOperation(context, actor, agent.id, byId))).toBe('agent_not_approved');
    expect((await listOperations(context, {})).operations).toEqual([]);
  });

  test('counts the resources of the desired state until the operation ends', async () => {
    const all = await open(fixture);
    await uploadModule(all.context, all.actor, 'issue', motd('hi\n', '/etc/issue', 'issue'));
    const id = await all.submit('plan', { modules: ['motd', 'issue'] });
    const none = { unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 };
    expect((await getOperation(all.context, id)).summary).toEqual({ ...none, total: 2 });
    await execute(all, [resultOf()]);
    expect((await getOperation(all.context, id)).summary.total).toBe(1);
  });

  test('dispatches operations one at a time and in order, and repeats each until the agent accepts it', async () => {
    const { domain, context, agent, submit, report } = await open(fixture);
    const first = await submit();
    const second = await submit('plan');
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(first);
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(first);
    expect(await domain.links.agentsWithWork()).toEqual([agent.id]);
    await report([{ type: 'accepted', operation_id: first }]);
    expect((await getOperation(context, first)).status).toBe('running');
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    await report(reportsOf(first, [resultOf()], { now: domain.now() }).slice(1));
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(second);
  });

  test('processes a report once, and ignores duplicate and late reports', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const reports = reportsOf(id, [resultOf()], { now: domain.now() });
    expect(await domain.links.reported(agent.id, instance, 4, reports)).toBeNull();
    const failed = reportsOf(id, [resultOf({ status: 'failed' })], { now: domain.now(), status: 'failed' });
    expect(await domain.links.reported(agent.id, instance, 4, failed)).toBeNull();
    expect(await domain.links.reported(agent.id, instance, 5, failed)).toBeNull();
    expect(await getOperation(context, id)).toMatchObject({ status: 'succeeded', resources: [{ status: 'changed' }] });
    expect((await listAudit(context, { event_type: 'state.failed' })).events).toEqual([]);
    expect(await connect(domain, agent)).toMatchObject({ acknowledged: 5 });
  });

  test('shows the output of a running program, then the recorded output', async () => {
    const { domain, context, actor, agent, submit, report } = await open(fixture);
    const other = await newAgent(domain, actor, 'web-2');
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const output = async () => (await getOutput(context, domain.liveOutput, 'web-1', id)).output;
    const print = (from: number, text: string, key = agent) =>
      domain.links.printed(key.id, {
        type: 'output_progress',
        operation_id: id,
        resource: 'motd/b',
        stdout: { from, to: from + text.length, text },
        stderr: null,
      });
    await print(0, 'forged\n', other);
    expect(await output()).toEqual({});
    await print(0, 'step 1\n');
    await print(7, 'step 2');
    expect(await output()).toEqual({
      'motd/b': { stdout: 'step 1\nstep 2', stderr: '', exit_code: null, truncated: false, running: true },
    });
    // Hints are delivered in a later event-loop turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(domain.hints).toContainEqual({ type: 'output', node_id: agent.id, operation_id: id, resource: 'motd/b' });
    const whole = { stdout: 'step 1\nstep 2\n', stderr: '', exit_code: 0, truncated: false };
    await report([{ type: 'output', operation_id: id, resource: 'motd/b', ...whole }]);
    expect(await output()).toEqual({ 'motd/b': whole });
    await report(reportsOf(id, [resultOf()], { now: domain.now() }));
    await new Promise((resolve) => setImmediate(resolve));
    // Output that arrives over another link after the operation has ended is ignored.
    await print(13, 'late');
    expect(await output()).toEqual({ 'motd/b': whole });
    expect(await domain.liveOutput.of(agent.id, id)).toEqual({});
  });

  test('uses the orchestrator’s clock for times, and the agent’s clock for durations', async () => {
    const { domain, context, agent, submit, report } = await open(fixture);
    for (const off of [3_600, -3_600]) {
      const id = await submit();
      const requestedAt = domain.now();
      await domain.links.nextOperation(agent.id);
      domain.clock.advance(30_000);
      const now = domain.now();
      const reports = reportsOf(id, [resultOf()], { now: now + off });
      // The agent was disconnected, so it did not report that the operation had started.
      const ended = reports
        .slice(1)
        .map((one) => (one.type === 'finished' ? { ...one, started_at: now + off - 20 } : one));
      await report(ended);
      expect(await getOperation(context, id)).toMatchObject({ started_at: now - 20, finished_at: now });
      const long = await submit();
      await domain.links.nextOperation(agent.id);
      const jumped = reportsOf(long, [resultOf()], { now: now + off });
      // The agent's clock is set forward by an hour during the operation.
      await report(jumped.map((one) => (one.type === 'finished' ? { ...one, started_at: now - 7_200 } : one)));
      expect((await getOperation(context, long)).started_at).toBeGreaterThanOrEqual(requestedAt);
    }
  });

  test('treats a report about another agent’s operation as a protocol violation', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    const other = await newAgent(domain, actor, 'web-2');
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const forged = reportsOf(id, [resultOf()], { now: domain.now() });
    expect(await domain.links.reported(other.id, instance, 1, forged)).toMatchObject({ code: 'protocol_violation' });
    expect((await getOperation(context, id)).status).toBe('queued');
    expect(await connect(domain, other)).toMatchObject({ acknowledged: 0 });
  });

  test('commits an operation’s results, output, and final report as they arrive', async () => {
    const { domain, context, actor, agent, submit, report } = await open(fixture);
    await uploadModule(context, actor, 'b', motd('b', '/etc/b', 'b'));
    const id = await submit('apply', { modules: ['motd', 'b'] });
    await domain.links.nextOperation(agent.id);
    const [one, two] = [resultOf(), resultOf({ id: 'b', identity: '/etc/b', status: 'failed', message: 'no space' })];
    await report([{ type: 'accepted', operation_id: id }]);
    await report([{ type: 'results', operation_id: id, position: 0, results: [one] }]);
    const output = { stdout: 'x\n', stderr: '', exit_code: 3, truncated: false };
    await report([{ type: 'output', operation_id: id, resource: 'motd/b', ...output }]);
    await report([{ type: 'results', operation_id: id, position: 1, results: [two] }]);
    await report(reportsOf(id, [one, two], { now: domain.now(), status: 'failed' }).slice(2));
    expect(await getOperation(context, id)).toMatchObject({
      status: 'failed',
      error: 'it failed',
      summary: { total: 2, changed: 1, failed: 1 },
      resources: [one, two],
    });
    expect(await getOutput(context, domain.liveOutput, 'web-1', id)).toEqual({
      operation_id: id,
      output: { 'motd/b': output },
    });
    expect(await getState(context, 'web-1')).toMatchObject({
      applied: [{ identity: '/etc/motd' }],
      unapplied: [{ identity: '/etc/b', reason: 'no space' }],
      snapshot_operation_id: null,
    });
  });

  test('stores the consecutive results in a report in one row, and reads each result once, by its position', async () => {
    const { domain, context, agent, submit, report } = await open(fixture);
    const id = await submit();
    await domain.links.nextOperation(agent.id);
    const [a, b, c, d] = ['/a', '/b', '/c', '/d'].map((identity) => resultOf({ identity })) as [Result, ...Result[]];
    const results = (position: number, ...some: (Result | undefined)[]) =>
      ({ type: 'results', operation_id: id, position, results: some as Result[] }) as const;
    await report([{ type: 'accepted', operation_id: id }, results(0, a, b), results(3, d)]);
    await report([results(2, c)]);
    const rows = defineQuery('test/result rows', (db) => db.selectFrom('operation_resources').select('position'));
    const positions = (await context.db.all(rows, {})).map(({ position }) => position);
    expect(positions.sort()).toEqual([0, 2, 3]);
    // Only the first result for a resource counts.
    await report([results(1, { ...a, message: 'again' }, { ...a, message: 'again' })]);
    await report(reportsOf(id, [], { now: domain.now() }).slice(1));
    const { resources } = await getOperation(context, id);
    expect(resources).toEqual([a, b, c, d]);
  });

  test('shows the last attempt of a plan that the agent restarted', async () => {
    const { domain, context, agent, submit, report } = await open(fixture);
    const id = await submit('plan');
    await domain.links.nextOperation(agent.id);
    const results = (position: number, ...some: Result[]) =>
      ({ type: 'results', operation_id: id, position, results: some }) as const;
    const planned = (identity: string, diff: string) => resultOf({ identity, status: 'would_change', diff });
    await report([{ type: 'accepted', operation_id: id }, results(0, planned('/a', 'old'), planned('/b', 'old'))]);
    const last = [planned('/a', 'new'), planned('/b', 'new')] as [Result, Result];
    await report([results(0, last[0])]);
    await report([results(1, last[1]), ...reportsOf(id, [], { now: domain.now() }).slice(1)]);
    const { resources } = await getOperation(context, id);
    expect(resources).toEqual(last);
  });

  test('reads results from an earlier release, which stored each result in its own row', async () => {
    const { context, submit } = await open(fixture);
    const id = await submit();
    const results = ['/a', '/b'].map((identity) => resultOf({ identity }));
    await context.db.write({
      name: 'test/results',
      statements: results.map((result, position) =>
        statement(putResourceResults, { operation_id: id, position, results: toJson(result) }),
      ),
    });
    expect((await getOperation(context, id)).resources).toEqual(results);
  });

  test('records removed resources and failed removals', async () => {
    const all = await open(fixture);
    const { context, actor, submit } = all;
    for (const name of ['b', 'c']) await uploadModule(context, actor, name, motd(name, `/etc/${name}`, name));
    await submit('apply', { modules: ['motd', 'b', 'c'] });
    await execute(all, [
      resultOf(),
      resultOf({ id: 'b', identity: '/etc/b' }),
      resultOf({ id: 'c', identity: '/etc/c' }),
    ]);
    await submit();
    await execute(
      all,
      [
        resultOf({ action: 'none', status: 'unchanged' }),
        resultOf({ id: 'b', identity: '/etc/b', action: 'remove' }),
        resultOf({ id: 'c', identity: '/etc/c', action: 'remove', status: 'failed', message: 'busy' }),
      ],
      'failed',
    );
    expect(await getState(context, 'web-1')).toMatchObject({
      applied: [{ identity: '/etc/motd' }],
      pending_removals: [{ identity: '/etc/c', reason: 'busy' }],
      unapplied: [],
    });
  });

  test('cancels undispatched operations immediately, and requests the cancellation of dispatched operations', async () => {
    const { domain, context, actor, agent, submit, report } = await open(fixture);
    const waiting = await submit();
    await cancelOperation(context, actor, waiting);
    expect(await getOperation(context, waiting)).toMatchObject({ status: 'cancelled', error: 'canceled by ada' });
    expect(await code(cancelOperation(context, actor, waiting))).toBe('operation_finished');
    expect(await code(cancelOperation(context, actor, 'nothing'))).toBe('operation_not_found');
    const sent = await submit();
    await domain.links.nextOperation(agent.id);
    await cancelOperation(context, actor, sent);
    expect((await getOperation(context, sent)).status).toBe('queued');
    expect(await domain.links.cancellations(agent.id)).toEqual([sent]);
    await report(reportsOf(sent, [], { now: domain.now(), status: 'cancelled' }));
    expect((await getOperation(context, sent)).status).toBe('cancelled');
    expect(await domain.links.cancellations(agent.id)).toEqual([]);
  });

  test('ends operations when their agent is rejected, and ignores later reports', async () => {
    const { domain, context, actor, agent, submit, report } = await open(fixture);
    const running = await submit();
    const queued = await submit('plan');
    await domain.links.nextOperation(agent.id);
    await report([{ type: 'accepted', operation_id: running }]);
    await setStatus(context, actor, agent.id, { status: 'rejected' });
    expect((await getOperation(context, running)).status).toBe('cancelled');
    expect((await getOperation(context, queued)).status).toBe('cancelled');
    await report(reportsOf(running, [resultOf()], { now: domain.now() }).slice(1));
    expect((await getOperation(context, running)).status).toBe('cancelled');
    await setStatus(context, actor, agent.id, { status: 'approved' });
    expect(
      await connect(domain, agent, { open_operations: [{ operation_id: running, state: 'running' }] }),
    ).toMatchObject({ settled_operations: [running] });
  });

  test('reports operations as settled to an agent that enrolls again after its removal, and resets its acknowledged sequence number', async () => {
    const { domain, context, actor, agent, submit, report } = await open(fixture);
    const running = await submit();
    await domain.links.nextOperation(agent.id);
    await report([{ type: 'accepted', operation_id: running }]);
    await setStatus(context, actor, agent.id, { status: 'rejected' });
    await removeAgent(context, actor, agent.id);
    const admission = await connect(domain, agent, { open_operations: [{ operation_id: running, state: 'running' }] });
    expect(admission).toEqual({
      admitted: true,
      standing: { status: 'pending', name: null, tags: {} },
      acknowledged: 0,
      settled_operations: [running],
    });
    expect(await domain.links.standing(agent.id)).toEqual({ status: 'pending', name: null, tags: {} });
  });

  test('keeps a disconnected agent’s operation queued until it expires', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    domain.connected.delete(agent.id);
    const short = await submit('apply', { queue: true, ttl: 60 });
    const long = await submit('apply', { queue: true });
    const upkeep = startUpkeep(context, domain.clock);
    await upkeep.round();
    expect((await getOperation(context, short)).status).toBe('queued');
    domain.clock.advance(4_000);
    domain.clock.advance(56_000);
    await upkeep.round();
    expect((await getOperation(context, short)).status).toBe('expired');
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(long);
    domain.clock.advance(90_000_000);
    await upkeep.round();
    // The operation was dispatched, and the agent was disconnected for days, so the outcome is unknown.
    expect((await getOperation(context, long)).status).toBe('interrupted');
    await upkeep.stop();
  });

  test('expires operations even if other scheduled work fails', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    domain.connected.delete(agent.id);
    const id = await submit('apply', { queue: true, ttl: 60 });
    let pruned = 0;
    const upkeep = startUpkeep(context, domain.clock, {
      runs: { sweep: () => Promise.reject(new Error('a run is broken')) },
      pruneSamples: async () => void pruned++,
    });
    domain.clock.jump(61_000);
    await expect(upkeep.round()).rejects.toThrow('a run is broken');
    expect((await getOperation(context, id)).status).toBe('expired');
    expect(pruned).toBe(1);
    await upkeep.stop();
  });

  test('marks operations as interrupted if the reconnected agent has no record of them', async () => {
    const { domain, context, agent, submit, report } = await open(fixture);
    const taken = await submit();
    await domain.links.nextOperation(agent.id);
    await report([{ type: 'accepted', operation_id: taken }]);
    await connect(domain, agent, { open_operations: [{ operation_id: taken, state: 'running' }] });
    expect((await getOperation(context, taken)).status).toBe('running');
    await connect(domain, agent);
    expect((await getOperation(context, taken)).status).toBe('interrupted');
  });

  test('paginates the list of operations, newest first', async () => {
    const all = await open(fixture);
    const { domain, context, actor, submit } = all;
    await newAgent(domain, actor, 'web-2');
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift(await submit(i % 2 === 0 ? 'apply' : 'plan'));
    const listed = async (filter: Parameters<typeof listOperations>[1]) => {
      const { operations, ...page } = await listOperations(context, filter);
      return { ids: operations.map(({ operation_id }) => operation_id), ...page };
    };
    expect(await listed({ limit: 2 })).toEqual({
      ids: ids.slice(0, 2),
      limit: 2,
      offset: 0,
      has_more: true,
      next_cursor: ids[1],
    });
    expect((await listed({ limit: 2, cursor: ids[1]! })).ids).toEqual(ids.slice(2, 4));
    expect((await listed({ limit: 9, offset: 3 })).ids).toEqual(ids.slice(3));
    expect((await listed({ kind: 'plan', agent: 'web-1', status: 'queued' })).ids).toEqual([ids[1], ids[3]]);
    expect((await listed({ agent: 'web-2' })).ids).toEqual([]);
    expect((await listed({ agent: 'nobody' })).ids).toEqual([]);
  });
});

describeAnyDatabase('drift', (fixture) => {
  test('compares a machine with its last successful apply, and reports drift once', async () => {
    const all = await open(fixture);
    const { domain, context, actor, submit } = all;
    expect(await code(submitDriftCheck(context, actor, 'web-1', 'operator'))).toBe('nothing_applied');
    const snapshot = await submit();
    await execute(all);
    const check = async (results = [resultOf({ action: 'none', status: 'unchanged' })], failed = false) => {
      const answer = checkDrift(context, domain.waiting, actor, 'web-1');
      const message = await vi.waitFor(async () => {
        const next = await domain.links.nextOperation(all.agent.id);
        if (!next) throw new Error('the check is not queued yet');
        return next.operation;
      });
      expect(message).toMatchObject({ kind: 'drift', snapshot_operation_id: snapshot, resources: [] });
      await all.report(
        reportsOf(message.operation_id, results, { now: domain.now(), status: failed ? 'failed' : 'succeeded' }),
      );
      return answer;
    };
    expect(await check()).toMatchObject({ status: 'in_sync', trigger: 'operator', resources: [] });
    const moved = resultOf({ action: 'update', status: 'would_change', corrective: true });
    const drifted = await check([moved, resultOf({ identity: '/b', action: 'none', status: 'unchanged' })]);
    expect(drifted).toMatchObject({ status: 'drifted', snapshot_operation_id: snapshot, resources: [moved] });
    expect((await check([moved])).status).toBe('drifted');
    expect((await check([], true)).status).toBe('failed');
    expect((await check()).status).toBe('in_sync');
    // The orchestrator stops after it has queued the check. The same request queues another check, which changes nothing.
    const stopping = checkDrift(context, domain.waiting, actor, 'web-1', AbortSignal.abort());
    expect(await code(stopping)).toBe('draining');
    const { events } = await listAudit(context, { category: 'drift', limit: 100 });
    const types = events.map(({ event_type }) => event_type).filter((type) => type !== 'drift.requested');
    expect(types.reverse()).toEqual(['drift.detected', 'drift.resolved']);
    expect(await getDrift(context, drifted.drift_id)).toEqual(drifted);
    expect((await latestDrift(context, 'web-1'))?.status).toBe('in_sync');
    expect((await listDrift(context, 'web-1', { limit: 50, offset: 0, status: 'drifted' })).items.length).toBe(2);
    const statuses = async (limit: number, offset: number) => {
      const { items, more } = await listDrift(context, 'web-1', { limit, offset });
      return [items.map(({ status }) => status).join(' '), more];
    };
    expect(await statuses(2, 0)).toEqual(['in_sync failed', true]);
    expect(await statuses(2, 3)).toEqual(['drifted in_sync', false]);
    expect((await listOperations(context, {})).operations.map(({ kind }) => kind)).toEqual(['apply']);
    expect(await code(getOperation(context, drifted.drift_id))).toBe('operation_not_found');
  });
});

describeAnyDatabase('modules and assignments', (fixture) => {
  test('keeps every module revision, and refuses to remove a module that is in use', async () => {
    const { context, actor } = await open(fixture);
    await uploadModule(context, actor, 'motd', motd('two\n'));
    expect((await listModules(context, { limit: 9, offset: 0 })).items).toMatchObject([
      { name: 'motd', uploaded_by: actor.id },
    ]);
    expect((await getModule(context, 'motd')).revision).toBe(2);
    expect((await getModule(context, 'motd', 1)).content).toContain('hi');
    expect(await code(getModule(context, 'motd', 3))).toBe('module_not_found');
    expect(
      (await listRevisions(context, 'motd', { limit: 99, offset: 0 })).items.map(({ revision }) => revision),
    ).toEqual([2, 1]);
    expect(await code(uploadModule(context, actor, 'other', motd('x')))).toBe('invalid_input');
    expect(await code(uploadModule(context, actor, 'motd', 'name: motd\nresorces: []\n'))).toBe('module_invalid');
    const assignment = { name: 'base', modules: ['motd'], selector: 'role=web' };
    await createAssignment(context, actor, assignment);
    expect(await code(createAssignment(context, actor, assignment))).toBe('name_taken');
    expect(await code(createAssignment(context, actor, { ...assignment, name: 'x', modules: ['no'] }))).toBe(
      'unknown_module',
    );
    expect(await code(createAssignment(context, actor, { ...assignment, name: 'x', selector: 'a=' + '"' }))).toBe(
      'selector_invalid',
    );
    expect(await code(removeModule(context, actor, 'motd'))).toBe('module_in_use');
    const update = (change: AssignmentChange, name = 'base') => updateAssignment(context, actor, name, change);
    const base = await requireAssignment(context, 'base');
    expect(await update({})).toEqual(base);
    expect(await update({ selector: 'role=db', description: 'all of them', window_only: true })).toEqual({
      ...base,
      selector: 'role=db',
      description: 'all of them',
      window_only: true,
    });
    await uploadModule(context, actor, 'other', motd('x').replace('name: motd', 'name: other'));
    const changed = await update({ modules: ['other', 'motd'], mode: 'audit', window_only: false, description: '' });
    expect(changed).toEqual({ ...base, modules: ['other', 'motd'], selector: 'role=db', mode: 'audit' });
    expect(await requireAssignment(context, 'base')).toEqual(changed);
    expect(changed.precedence).toBe(0);
    expect(await update({ precedence: 10 })).toEqual({ ...changed, precedence: 10 });
    expect(await requireAssignment(context, 'base')).toEqual({ ...changed, precedence: 10 });
    expect(await code(update({ modules: ['no'] }))).toBe('unknown_module');
    expect(await code(update({ modules: ['motd', 'motd'] }))).toBe('invalid_input');
    expect(await code(update({ selector: 'a="' }))).toBe('selector_invalid');
    expect(await code(update({ parameters: { motd: { nothing: 1 } } }))).toBe('invalid_input');
    expect(await code(update({ mode: 'audit' }, 'no'))).toBe('assignment_not_found');
    // A concurrent upload commits after the first upload's read and before its write.
    const late: Context = {
      ...context,
      db: new Proxy(context.db, {
        get(db, name) {
          if (name === 'write')
            return async (unit: Parameters<typeof db.write>[0]) => {
              await update({ modules: ['motd'] });
              return db.write(unit);
            };
          const value = Reflect.get(db, name);
          return typeof value === 'function' ? value.bind(db) : value;
        },
      }),
    };
    expect(await code(updateAssignment(late, actor, 'base', { modules: ['other'] }))).toBe('assignment_changed');
    expect((await requireAssignment(context, 'base')).modules).toEqual(['motd']);
    const updates = await listAudit(context, { event_type: 'assignment.updated' });
    expect(updates.events.map(({ metadata }) => metadata.changed)).toEqual([
      ['modules'],
      ['precedence'],
      ['modules', 'description', 'mode', 'window_only'],
      ['selector', 'description', 'window_only'],
    ]);
    await removeAssignment(context, actor, 'base');
    expect(await listAssignments(context)).toEqual([]);
    await removeModule(context, actor, 'motd');
    expect(await code(removeModule(context, actor, 'motd'))).toBe('module_not_found');
    // A module that is created again continues the numbering of its revisions, so that revisions remain unambiguous.
    await uploadModule(context, actor, 'motd', motd('three\n'));
    expect((await getModule(context, 'motd')).revision).toBe(3);
  });

  test('gives each concurrent module upload its own revision', async () => {
    const { context, actor } = await open(fixture);
    await Promise.all(Array.from({ length: 5 }, (_, i) => uploadModule(context, actor, 'motd', motd(`${i}\n`))));
    expect(
      (await listRevisions(context, 'motd', { limit: 99, offset: 0 })).items.map(({ revision }) => revision),
    ).toEqual([6, 5, 4, 3, 2, 1]);
  });
});

describeAnyDatabase('runs', (fixture) => {
  const assign = (all: { domain: Domain; actor: Actor }, more = {}) =>
    createAssignment(all.domain.context, all.actor, { name: 'base', modules: ['motd'], selector: 'role=web', ...more });

  test('queues an operation for every matching agent, and ends the run with the last operation', async () => {
    const all = await open(fixture);
    const { domain, context, actor, agent } = all;
    const absent = await newAgent(domain, actor, 'web-2');
    domain.connected.delete(absent.id);
    await newAgent(domain, actor, 'db-1');
    for (const name of ['web-1', 'web-2']) await putOneTag(context, actor, name, 'role', 'web');
    await assign(all);
    expect((await getAssignment(context, 'base')).matches.sort()).toEqual([agent.id, absent.id].sort());
    const id = await startRun(context, domain.conductor, actor, 'base', { kind: 'apply' });
    expect((await getRun(context, id)).status).toBe('running');
    const answer = awaitRun(context, domain.waiting, id);
    const message = await execute(all);
    expect(message.modules).toEqual(['motd']);
    const { run, ended } = await answer;
    expect(ended).toBe(true);
    expect(run).toMatchObject({ status: 'failed', assignment: 'base', kind: 'apply' });
    const byName = Object.fromEntries(run.results.map((result) => [result.name, result]));
    expect(byName).toMatchObject({
      'web-1': { status: 'succeeded', operation_id: message.operation_id, summary: { changed: 1 } },
      'web-2': { status: 'failed', operation_id: null, error: 'the agent is offline' },
    });
    expect((await listRuns(context, { limit: 50, offset: 0 })).items.map(({ run_id }) => run_id)).toEqual([id]);
    expect((await getOperation(context, message.operation_id)).run_id).toBe(id);
    const { events } = await listAudit(context, { category: 'run' });
    expect(events.map(({ event_type }) => event_type)).toEqual(['run.ended', 'run.started']);
  });

  test('queues operations for disconnected agents on request, and marks the run as succeeded if none fails', async () => {
    const all = await open(fixture);
    const { domain, context, actor, agent } = all;
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await assign(all);
    domain.connected.delete(agent.id);
    const id = await startRun(context, domain.conductor, actor, 'base', {
      kind: 'plan',
      offline: 'queue',
    });
    expect(await getRun(context, id)).toMatchObject({ status: 'running', results: [{ status: 'queued' }] });
    await execute(all, [resultOf({ status: 'would_change' })]);
    const { run } = await awaitRun(context, domain.waiting, id);
    expect(run).toMatchObject({ status: 'succeeded', results: [{ status: 'succeeded' }] });
  });

  test('applies assigned modules, and keeps the resources of audited modules', async () => {
    const all = await open(fixture);
    const { domain, context, actor, submit } = all;
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await uploadModule(context, actor, 'hosts', motd('h\n', '/etc/hosts', 'hosts'));
    await assign(all, { name: 'b-hosts', modules: ['hosts'] });
    await assign(all, { name: 'a-audit', modules: ['motd'], mode: 'audit' });
    await submit('apply', { modules: [] });
    expect(await execute(all)).toMatchObject({ modules: ['hosts'], keep_modules: ['motd'] });
    expect(await code(startRun(context, domain.conductor, actor, 'a-audit', { kind: 'apply' }))).toBe(
      'assignment_audits',
    );
    expect(await code(startRun(context, domain.conductor, actor, 'none', { kind: 'plan' }))).toBe(
      'assignment_not_found',
    );
    await startRun(context, domain.conductor, actor, 'a-audit', { kind: 'plan' });
    expect((await execute(all)).modules).toEqual(['motd', 'hosts']);
  });

  test('ends a run immediately if no agent matches', async () => {
    const all = await open(fixture);
    const { domain, context, actor } = all;
    await assign(all);
    const id = await startRun(context, domain.conductor, actor, 'base', { kind: 'apply' });
    expect(await getRun(context, id)).toMatchObject({ status: 'succeeded', results: [] });
    expect((await awaitRun(context, domain.waiting, id)).ended).toBe(true);
  });

  test('ends a run even if the process stopped or a hint was lost after the last outcome', async () => {
    const all = await open(fixture);
    const { domain, context, actor } = all;
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await assign(all);
    const id = await startRun(context, domain.conductor, actor, 'base', { kind: 'apply' });
    await domain.conductor.sweep();
    expect((await getRun(context, id)).status).toBe('running');
    await context.bus.close();
    await execute(all);
    expect((await getRun(context, id)).status).toBe('running');
    await domain.conductor.sweep();
    await domain.conductor.sweep();
    expect((await getRun(context, id)).status).toBe('succeeded');
    expect((await listAudit(context, { event_type: 'run.ended' })).events.length).toBe(1);
  });
});
