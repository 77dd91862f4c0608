import { MusterError } from '@muster/protocol';
import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, type Key, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { awaitRun, getOperation, getRun } from '../../../test/reading.ts';
import { startUpkeep } from '../../schedule/upkeep.ts';
import { withOverrides } from '../../store/database.ts';
import { removeAgent, setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { latestDrift } from '../drift/drift.ts';
import { createAssignment } from '../modules/assignments.ts';
import { removeModule, uploadModule } from '../modules/modules.ts';
import { createWindow } from '../modules/windows.ts';
import { listOperations, submitOperation } from '../operations/operations.ts';
import type { Context } from '../shared/context.ts';
import { createModuleDocuments } from '../shared/module-documents.ts';
import type { RunRequest } from './run-basis.ts';
import { createRunConductor } from './run-conductor.ts';
import { cancelRun } from './run-end.ts';
import { listRuns, startRun } from './runs.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const fileModule = (name: string, content = 'hi\n') => `name: ${name}
supports: [{ platform: linux }]
parameters: { port: { type: integer, default: 80 } }
resources:
  - id: file
    resource: { file-unix: { path: /etc/${name}, content: ${JSON.stringify(content)} } }
`;

function withReads(
  context: Context,
  before: (name: string) => Promise<void>,
  after: (name: string) => Promise<void> = async () => {},
): Context {
  const { db } = context;
  const around = async <T>(name: string, read: () => Promise<T>): Promise<T> => {
    await before(name);
    const answer = await read();
    await after(name);
    return answer;
  };
  return {
    ...context,
    db: withOverrides(db, {
      get: (query, params) => around(query.name, () => db.get(query, params)),
      all: (query, params) => around(query.name, () => db.all(query, params)),
    }),
  };
}

async function open(
  fixture: Parameters<Parameters<typeof describeAnyDatabase>[1]>[0],
  count = 1,
  assignment: Partial<Parameters<typeof createAssignment>[2]> = {},
) {
  const domain = await openDomain(fixture);
  const { context } = domain;
  const { actor } = await newAdmin(domain);
  const agents: Key[] = [];
  for (let i = 0; i < count; i++) {
    agents.push(await newAgent(domain, actor, `web-${i}`));
    await putOneTag(context, actor, `web-${i}`, 'role', 'web');
  }
  // Sorts the agents by their turn.
  agents.sort((a, b) => (a.id < b.id ? -1 : 1));
  await uploadModule(context, actor, 'motd', fileModule('motd'));
  await createAssignment(context, actor, { name: 'base', modules: ['motd'], selector: 'role=web', ...assignment });
  const start = (request: Partial<RunRequest> = {}) =>
    startRun(context, domain.conductor, actor, 'base', { kind: 'apply', ...request });
  const seqs = new Map<string, number>();
  /** Runs the agent's next operation, acting as both the gateway and the agent. Returns null if the agent has none. */
  const execute = async (
    agent: Key,
    status: 'succeeded' | 'failed' | 'cancelled' = 'succeeded',
    results = [resultOf()],
  ) => {
    const next = await domain.links.nextOperation(agent.id);
    if (!next) return null;
    const seq = (seqs.get(agent.id) ?? 0) + 1;
    seqs.set(agent.id, seq);
    const reports = reportsOf(next.operation.operation_id, results, { now: domain.now(), status }).map((report) =>
      report.type === 'finished' && next.operation.kind === 'plan'
        ? { ...report, plan_digest: 'ab'.repeat(32) }
        : report,
    );
    await domain.links.reported(agent.id, '01'.repeat(16), seq, reports);
    return next.operation;
  };
  const withWork = async () => {
    const ids = await domain.links.agentsWithWork();
    return agents.flatMap(({ id }, i) => (ids.includes(id) ? [i] : []));
  };
  /** Waits until exactly the specified agents have an operation. */
  const untilWork = (...wanted: number[]) => vi.waitFor(async () => expect(await withWork()).toEqual(wanted));
  const outcomes = async (id: string) =>
    (await getRun(context, id)).results.map(({ status, error }) => (error === null ? status : `${status}: ${error}`));
  const events = async (category: string) =>
    (await listAudit(context, { category, limit: 100 })).events.map(({ event_type }) => event_type).reverse();
  return { domain, context, actor, agents, start, execute, untilWork, outcomes, events };
}

describeAnyDatabase('runs on named agents', (fixture) => {
  const openNamed = async (count: number) => {
    const opened = await open(fixture, count, { selector: 'role=nobody' });
    const { domain, context, actor, agents } = opened;
    await uploadModule(context, actor, 'extra', fileModule('extra'));
    const node_ids = agents.map(({ id }) => id);
    const begin = (request: Partial<RunRequest> = {}, about: { node_ids?: string[]; modules?: string[] } = {}) =>
      startRun(
        context,
        domain.conductor,
        actor,
        { node_ids, modules: ['extra'], ...about },
        { kind: 'apply', ...request },
      );
    return { ...opened, node_ids, begin };
  };

  test('applies modules to named agents in order, with canaries and batches', async () => {
    const { context, agents, node_ids, begin, execute, untilWork, outcomes } = await openNamed(3);
    // The request names an agent twice, but the agent gets only one turn.
    const id = await begin({ canary: 1, batch: 1 }, { node_ids: [node_ids[2]!, node_ids[0]!, node_ids[2]!] });
    await untilWork(2);
    expect(await execute(agents[2]!)).toMatchObject({ modules: ['extra'] });
    await untilWork(0);
    await execute(agents[0]!);
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('succeeded'));
    expect(await outcomes(id)).toEqual(['succeeded', 'succeeded']);
    expect(await getRun(context, id)).toMatchObject({ assignment: null, kind: 'apply' });
    expect((await listAudit(context, { category: 'run' })).events.at(-1)).toMatchObject({
      event_type: 'run.started',
      summary: 'apply started on 2 agents',
      metadata: { agents: 2, modules: ['extra'], canary: 1 },
    });
  });

  test('includes each named agent’s assignments', async () => {
    const { context, actor, agents, begin, execute } = await openNamed(2);
    await putOneTag(context, actor, agents[0]!.id, 'role', 'nobody');
    await begin();
    expect((await execute(agents[0]!))?.modules).toEqual(['motd', 'extra']);
    expect((await execute(agents[1]!))?.modules).toEqual(['extra']);
  });

  test('applies a plan run for the same agents, or one of its plans', async () => {
    const { context, actor, agents, node_ids, begin, execute, outcomes } = await openNamed(2);
    const plan = await begin({ kind: 'plan' });
    for (const agent of agents) await execute(agent);
    await vi.waitFor(async () => expect((await getRun(context, plan)).finished_at).not.toBeNull());
    const planned = (await getRun(context, plan)).results[0]!;
    const bound = await submitOperation(context, actor, planned.node_id, {
      kind: 'apply',
      modules: [],
      plan_id: planned.operation_id!,
      queue: true,
    });
    expect(await getOperation(context, bound)).toMatchObject({ modules: ['extra'], plan_id: planned.operation_id });
    for (const agent of agents) await execute(agent);
    await uploadModule(context, actor, 'extra', fileModule('extra', 'changed'));
    const late = await begin({ plan_run_id: plan });
    await vi.waitFor(async () => expect((await getRun(context, late)).status).toBe('failed'));
    expect(await outcomes(late)).toEqual(node_ids.map(() => expect.stringContaining('has changed since the plan')));
  });

  test('refuses missing agents, modules, and plans', async () => {
    const { domain, context, actor, begin, start, execute, agents } = await openNamed(1);
    expect(await code(begin({}, { node_ids: ['ab'.repeat(16)] }))).toBe('agent_not_found');
    expect(await code(begin({}, { modules: ['nothing'] }))).toBe('module_not_found');
    expect(await code(begin({ plan_run_id: '01KAGZ5R3E5F6G7H8J9K0M1N2P' }))).toBe('run_not_found');
    await createAssignment(context, actor, { name: 'other', modules: ['motd'], selector: 'role=web' });
    const ofAssignment = await startRun(context, domain.conductor, actor, 'other', { kind: 'plan' });
    await execute(agents[0]!);
    await vi.waitFor(async () => expect((await getRun(context, ofAssignment)).finished_at).not.toBeNull());
    expect(await code(begin({ plan_run_id: ofAssignment }))).toBe('invalid_input');
    const ofAgents = await begin({ kind: 'plan' });
    await execute(agents[0]!);
    await vi.waitFor(async () => expect((await getRun(context, ofAgents)).finished_at).not.toBeNull());
    expect(await code(start({ plan_run_id: ofAgents }))).toBe('invalid_input');
  });
});

describeAnyDatabase('runs in waves', (fixture) => {
  test('limits the number of agents in progress, and ends the run after the last agent', async () => {
    const { domain, context, agents, start, execute, untilWork } = await open(fixture, 4);
    const id = await start({ batch: '50%' });
    await untilWork(0, 1);
    await execute(agents[1]!);
    await untilWork(0, 2);
    await execute(agents[0]!);
    await execute(agents[2]!);
    await untilWork(3);
    const answer = awaitRun(context, domain.waiting, id);
    await execute(agents[3]!);
    expect((await answer).run).toMatchObject({ status: 'succeeded' });
  });

  test('waits only briefly for more free slots before the next agent starts', async () => {
    const { agents, start, execute, untilWork } = await open(fixture, 10);
    await start({ batch: 8 });
    await untilWork(0, 1, 2, 3, 4, 5, 6, 7);
    await execute(agents[0]!);
    await untilWork(1, 2, 3, 4, 5, 6, 7, 8);
  });

  test('starts with the canaries, and halts if a canary fails', async () => {
    const { domain, context, agents, start, execute, untilWork, outcomes, events } = await open(fixture, 4);
    const id = await start({ canary: 2 });
    await untilWork(0, 1);
    await execute(agents[0]!);
    await execute(agents[1]!, 'failed');
    const { run, ended } = await awaitRun(context, domain.waiting, id);
    expect([run.status, ended]).toEqual(['halted', true]);
    expect(await outcomes(id)).toEqual([
      'succeeded',
      'failed: it failed',
      'cancelled: not tried: the run was halted, because a canary did not succeed',
      'cancelled: not tried: the run was halted, because a canary did not succeed',
    ]);
    expect(await domain.links.agentsWithWork()).toEqual([]);
    expect(await events('run')).toEqual(['run.started', 'run.halted', 'run.ended']);
  });

  test('applies the same revisions to the canaries and to all other agents', async () => {
    const { context, actor, agents, start, execute, untilWork } = await open(fixture, 3);
    await start({ canary: 1 });
    await untilWork(0);
    await uploadModule(context, actor, 'motd', fileModule('motd', 'untried\n'));
    await execute(agents[0]!);
    await untilWork(1, 2);
    expect(await execute(agents[1]!)).toMatchObject({ resources: [{ body: { content: 'hi\n' } }] });
  });

  test('applies the modules required at the start of the run to all agents, even if they are no longer required', async () => {
    const { context, actor, agents, start, execute, untilWork } = await open(fixture, 3);
    await uploadModule(context, actor, 'base', fileModule('base', 'base\n'));
    await uploadModule(context, actor, 'motd', `${fileModule('motd', 'hi\n')}requires: [{ module: base }]\n`);
    await start({ canary: 1 });
    await untilWork(0);
    await uploadModule(context, actor, 'motd', fileModule('motd', 'hi\n'));
    await uploadModule(context, actor, 'base', fileModule('base', 'untried\n'));
    await removeModule(context, actor, 'base');
    await execute(agents[0]!);
    await untilWork(1, 2);
    for (const agent of [agents[1]!, agents[2]!])
      expect(await execute(agent)).toMatchObject({
        resources: [{ module: 'base', body: { content: 'base\n' } }, { module: 'motd' }],
      });
  });

  test('halts the run if the failures exceed the maximum, but completes dispatched operations', async () => {
    const { domain, context, agents, start, execute, untilWork, outcomes } = await open(fixture, 5);
    const id = await start({ batch: 3, max_failures: 0 });
    await untilWork(0, 1, 2);
    // The second operation is dispatched; the third is only queued.
    await domain.links.nextOperation(agents[1]!.id);
    await execute(agents[0]!, 'failed');
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('halted'));
    expect((await getRun(context, id)).finished_at).toBeNull();
    const not = 'cancelled: not tried: the run was halted, because 1 agent failed, and the maximum is 0';
    expect(await outcomes(id)).toEqual(['failed: it failed', 'queued', not, not, not]);
    await execute(agents[1]!);
    const { run } = await awaitRun(context, domain.waiting, id);
    expect(run.status).toBe('halted');
    expect(run.results[1]?.status).toBe('succeeded');
    expect(await domain.links.nextOperation(agents[2]!.id)).toBeNull();
  });

  test('does not repeat a lost dispatch in a halted run', async () => {
    const { domain, context, agents, start, execute, untilWork, outcomes } = await open(fixture, 2);
    const id = await start({ max_failures: 0 });
    await untilWork(0, 1);
    // The operation is marked as dispatched, and its message is lost.
    await domain.links.nextOperation(agents[1]!.id);
    await execute(agents[0]!, 'failed');
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('halted'));
    await connect(domain, agents[1]!);
    expect(await domain.links.nextOperation(agents[1]!.id)).toBeNull();
    const { run } = await awaitRun(context, domain.waiting, id);
    expect(run.status).toBe('halted');
    expect(await outcomes(id)).toEqual([
      'failed: it failed',
      'cancelled: not tried: the run was stopped before the agent received it',
    ]);
  });

  test('continues a run in the next process', async () => {
    const { domain, context, agents, start, execute, untilWork } = await open(fixture, 3);
    const id = await start({ batch: 1, canary: 1 });
    await untilWork(0);
    await domain.conductor.stop();
    await execute(agents[0]!);
    await untilWork();
    const next = createRunConductor(context, { maxConcurrent: 1000 });
    await next.sweep();
    await untilWork(1);
    await next.sweep();
    await untilWork(1);
    await execute(agents[1]!);
    await untilWork(2);
    await execute(agents[2]!);
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('succeeded'));
    await next.stop();
  });

  test('does not count database failures as agent outcomes', async () => {
    const { domain, context, agents, start, execute, untilWork, outcomes } = await open(fixture, 2);
    await domain.conductor.stop();
    let away = true;
    const failing = withReads(context, async (name) => {
      if (away && name === 'modules/revision') throw new MusterError('storage_unavailable', 'the disk is gone');
    });
    const next = createRunConductor(
      { ...failing, documents: createModuleDocuments(failing.db) },
      { maxConcurrent: 1000 },
    );
    const id = await start();
    await next.sweep();
    expect(await outcomes(id)).toEqual(['queued', 'queued']);
    away = false;
    await next.sweep();
    await untilWork(0, 1);
    await execute(agents[0]!);
    await execute(agents[1]!);
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('succeeded'));
    await next.stop();
  });

  test('respects the concurrent-agent limit after a restart while agents are disconnected', async () => {
    const { domain, context, agents, start, execute, untilWork } = await open(fixture, 3);
    const conductor = () => createRunConductor(context, { maxConcurrent: 1 });
    await domain.conductor.stop();
    const first = conductor();
    const id = await start({ offline: 'queue' });
    await first.sweep();
    await untilWork(0);
    await first.stop();
    domain.connected.clear();
    const next = conductor();
    await next.sweep();
    await untilWork(0);
    domain.connected.add(agents[1]!.id);
    await next.sweep();
    // The first agent may still be running its operation, although it is not connected.
    await untilWork(0);
    await execute(agents[0]!);
    await untilWork(1);
    domain.clock.advance(61_000);
    // Agents that are disconnected after the grace period count as absent, and get an operation without a slot.
    await next.sweep();
    await untilWork(1, 2);
    await execute(agents[1]!);
    await execute(agents[2]!);
    await vi.waitFor(async () => expect((await getRun(context, id)).status).toBe('succeeded'));
    await next.stop();
  });

  test('respects the concurrent-agent limit while rows are reloaded', async () => {
    const { domain, context, agents, start, execute, untilWork } = await open(fixture, 3);
    await domain.conductor.stop();
    let hold = Promise.resolve();
    let reading = () => {};
    const slow = withReads(
      context,
      async () => {},
      async (name) => {
        if (name !== 'runs/tracked results') return;
        reading();
        await hold;
      },
    );
    const next = createRunConductor(slow, { maxConcurrent: 1 });
    await start();
    await next.sweep();
    await untilWork(0);
    await next.sweep();
    const held = Promise.withResolvers<void>();
    const read = new Promise<void>((resolve) => {
      reading = resolve;
    });
    hold = held.promise;
    const sweep = next.sweep();
    await read;
    await execute(agents[0]!);
    await new Promise((resolve) => setTimeout(resolve, 100));
    domain.connected.delete(agents[1]!.id);
    held.resolve();
    await sweep;
    await vi.waitFor(async () => expect(await domain.links.agentsWithWork()).toHaveLength(1));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await domain.links.agentsWithWork()).toHaveLength(1);
    await next.stop();
  });

  test('starts each agent only once, and none after a cancellation', async () => {
    const { domain, context, actor, start, outcomes } = await open(fixture, 3);
    await domain.conductor.stop();
    const conductors = [1, 2].map(() => createRunConductor(context, { maxConcurrent: 1000 }));
    const id = await start();
    expect(await domain.links.agentsWithWork()).toEqual([]);
    await Promise.all(conductors.map((conductor) => conductor.advance(id)));
    const { operations } = await listOperations(context, {});
    expect(operations.map(({ operation_id }) => operation_id).sort()).toEqual(
      (await getRun(context, id)).results.map(({ operation_id }) => operation_id).sort(),
    );
    const second = await start();
    await Promise.all([...conductors.map((conductor) => conductor.advance(second)), cancelRun(context, actor, second)]);
    await vi.waitFor(async () => expect((await getRun(context, second)).finished_at).not.toBeNull());
    expect(await outcomes(second)).toEqual(Array(3).fill('cancelled: canceled by ada'));
    const left = (await listOperations(context, { status: 'queued' })).operations;
    expect(left.every(({ run_id }) => run_id === id)).toBe(true);
    await Promise.all(conductors.map((conductor) => conductor.stop()));
  });

  test('continues a run after a hint was lost', async () => {
    const { domain, context, agents, start, execute, untilWork } = await open(fixture, 2);
    const id = await start({ batch: 1 });
    await context.bus.close();
    await execute(agents[0]!);
    await untilWork();
    await domain.conductor.sweep();
    // The run has just changed, so the next sweep reads the rows.
    await domain.conductor.sweep();
    await untilWork(1);
    await execute(agents[1]!);
    await domain.conductor.sweep();
    await domain.conductor.sweep();
    expect((await getRun(context, id)).status).toBe('succeeded');
  });

  test('records outcomes for agents that disconnect, are rejected, or are removed', async () => {
    const { domain, context, actor, agents, start, execute, untilWork, outcomes } = await open(fixture, 4);
    const id = await start({ batch: 1 });
    await untilWork(0);
    const upkeep = startUpkeep(context, domain.clock, { runs: domain.conductor });
    await setStatus(context, actor, agents[1]!.id, { status: 'rejected' });
    await setStatus(context, actor, agents[2]!.id, { status: 'rejected' });
    await removeAgent(context, actor, agents[2]!.id);
    domain.connected.delete(agents[0]!.id);
    for (let i = 0; i < 4; i++) {
      await upkeep.round();
      domain.clock.advance(30_000);
    }
    await untilWork(3);
    await execute(agents[3]!);
    await awaitRun(context, domain.waiting, id);
    expect(await outcomes(id)).toEqual([
      'failed: the agent is offline',
      'failed: the agent is no longer approved',
      'failed: the agent is no longer approved',
      'succeeded',
    ]);
    await upkeep.stop();
  });

  test('holds offline agents in a paced run until they connect or their wait expires', async () => {
    const { domain, context, agents, start, execute, untilWork, outcomes } = await open(fixture, 3);
    for (const { id } of agents.slice(1)) domain.connected.delete(id);
    const id = await start({ batch: 2, offline: 'queue', ttl: 600 });
    await untilWork(0);
    await execute(agents[0]!);
    domain.clock.advance(599_000);
    domain.connected.add(agents[2]!.id);
    await domain.conductor.sweep();
    await untilWork(2);
    // The time limit for connecting starts with the agent's turn.
    domain.clock.advance(2_000);
    await execute(agents[2]!);
    await domain.conductor.sweep();
    await domain.conductor.sweep();
    expect(await outcomes(id)).toEqual(['succeeded', 'expired: the agent did not connect in time', 'succeeded']);
    expect((await getRun(context, id)).status).toBe('failed');
  });

  test('cancels waiting turns and requests the cancellation of running operations when a run is canceled', async () => {
    const { domain, context, actor, agents, start, execute, untilWork, outcomes, events } = await open(fixture, 3);
    const id = await start({ batch: 2 });
    await untilWork(0, 1);
    await domain.links.nextOperation(agents[0]!.id);
    await cancelRun(context, actor, id);
    expect(await outcomes(id)).toEqual(['queued', 'cancelled: canceled by ada', 'cancelled: canceled by ada']);
    expect(await domain.links.cancellations(agents[0]!.id)).toHaveLength(1);
    await vi.waitFor(() =>
      expect(domain.hints).toContainEqual(expect.objectContaining({ type: 'cancel', node_id: agents[0]!.id })),
    );
    await execute(agents[0]!, 'cancelled', []);
    const { run } = await awaitRun(context, domain.waiting, id);
    expect(run).toMatchObject({ status: 'cancelled', results: [{ status: 'cancelled' }, {}, {}] });
    expect(await code(cancelRun(context, actor, id))).toBe('run_finished');
    expect(await code(cancelRun(context, actor, 'x'))).toBe('run_not_found');
    expect(await events('run')).toEqual(['run.started', 'run.cancelled', 'run.ended']);
  });

  test('lists the number of agents with each outcome during and after the run', async () => {
    const { context, actor, agents, start, execute, domain } = await open(fixture, 4);
    const listed = async () => (await listRuns(context, { limit: 1, offset: 0 })).items[0]?.outcomes;
    const none = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, running: 0, waiting: 0 };
    const id = await start({ batch: 2, max_failures: 0 });
    expect(await listed()).toEqual({ ...none, running: 2, waiting: 2 });
    await execute(agents[0]!);
    await vi.waitFor(async () => expect(await listed()).toEqual({ ...none, succeeded: 1, running: 2, waiting: 1 }));
    await execute(agents[1]!, 'failed', []);
    await execute(agents[2]!, 'cancelled', []);
    await awaitRun(context, domain.waiting, id);
    const ended = { ...none, succeeded: 1, failed: 1, cancelled: 1, skipped: 1 };
    expect(await listed()).toEqual(ended);
    // The counts of a run that has ended are stored.
    await setStatus(context, actor, agents[0]!.id, { status: 'rejected' });
    await removeAgent(context, actor, agents[0]!.id);
    expect(await listed()).toEqual(ended);
  });

  test('lists runs by status, kind, and assignment', async () => {
    const { context, actor, agents, start, execute, domain } = await open(fixture);
    const first = await start();
    await execute(agents[0]!);
    await awaitRun(context, domain.waiting, first);
    const second = await start({ kind: 'plan' });
    await cancelRun(context, actor, second);
    const listed = async (filter: Parameters<typeof listRuns>[1]) => {
      const { items, more } = await listRuns(context, filter);
      return [items.map(({ run_id }) => run_id), more];
    };
    expect(await listed({ limit: 1, offset: 0 })).toEqual([[second], true]);
    expect(await listed({ limit: 1, offset: 1 })).toEqual([[first], false]);
    expect(await listed({ limit: 9, offset: 0, status: 'succeeded' })).toEqual([[first], false]);
    expect(await listed({ limit: 9, offset: 0, assignment: 'base', status: 'cancelled' })).toEqual([[second], false]);
    expect(await listed({ limit: 9, offset: 0, assignment: 'other' })).toEqual([[], false]);
    expect(await listed({ limit: 9, offset: 0, kind: 'apply' })).toEqual([[first], false]);
    expect(await listed({ limit: 9, offset: 0, kind: 'plan', status: 'succeeded' })).toEqual([[], false]);
    expect(await listed({ limit: 9, offset: 0, latest: 'true' })).toEqual([[second], false]);
    expect(await listed({ limit: 9, offset: 0, latest: 'true', kind: 'apply' })).toEqual([[first], false]);
    expect(await listed({ limit: 9, offset: 0, latest: 'false', assignment: 'base' })).toEqual([
      [second, first],
      false,
    ]);
  });
});

describeAnyDatabase('window-only and audit assignments', (fixture) => {
  test('sets declared parameters and sends their values to the machine', async () => {
    const { context, actor, agents, execute } = await open(fixture);
    const templated = `name: t
supports: [{ platform: linux }]
parameters: { port: { type: integer, default: 80 }, name: { type: string } }
resources:
  - { id: f, resource: { file-unix: { path: /etc/t, content: "\${{ param.name }}:\${{ param.port }}" } } }
`;
    await uploadModule(context, actor, 't', templated);
    const create = (parameters: Parameters<typeof createAssignment>[2]['parameters']) =>
      createAssignment(context, actor, { name: 'p', modules: ['t', 'motd'], selector: 'role=web', parameters });
    const faults = await create({ t: { port: 'x', nmae: 'a/b' }, motd: { port: 1.5 } }).then(
      () => [],
      (error: MusterError) => error.errors ?? [],
    );
    expect(faults.map(({ path }) => path)).toEqual([
      '/parameters/t/port',
      '/parameters/t/nmae',
      '/parameters/motd/port',
    ]);
    expect(faults[1]?.message).toContain('name');
    await create({ t: { name: 'web' } });
    await submitOperation(context, actor, agents[0]!.id, {
      kind: 'apply',
      modules: [],
      queue: false,
    });
    expect((await execute(agents[0]!))?.resources.find(({ module }) => module === 't')).toMatchObject({
      body: { content: 'web:80' },
    });
  });

  test('applies window-only assignments only inside a window', async () => {
    const all = await open(fixture, 1, { window_only: true });
    const { domain, context, actor, agents, start, execute, outcomes } = all;
    const id = await start();
    expect(await execute(agents[0]!)).toMatchObject({ modules: [], keep_modules: ['motd'] });
    await awaitRun(context, domain.waiting, id);
    expect(await outcomes(id)).toEqual([
      'succeeded: no maintenance window is open for the agent, so this assignment is not applied',
    ]);
    await start({ kind: 'plan' });
    expect(await execute(agents[0]!)).toMatchObject({ modules: ['motd'] });
    const { operation_id } = await apply();
    expect((await getOperation(context, operation_id)).modules).toEqual([]);
    const now = domain.now();
    const window = { starts_at: now - 10, ends_at: now + 100, reason: 'patching' };
    await createWindow(context, actor, { ...window, selector: 'role=db' });
    expect((await apply()).modules).toEqual([]);
    await createWindow(context, actor, { ...window, selector: 'role=web' });
    expect(await apply()).toMatchObject({ modules: ['motd'], keep_modules: [] });
    domain.clock.advance(100_000);
    expect(await apply()).toMatchObject({ modules: [], keep_modules: ['motd'] });

    async function apply() {
      await submitOperation(context, actor, agents[0]!.id, {
        kind: 'apply',
        modules: [],
        queue: false,
      });
      return (await execute(agents[0]!))!;
    }
  });

  test('applies nothing to an agent that reconnects after its window closed', async () => {
    const { domain, context, actor, agents, start, outcomes } = await open(fixture, 1, { window_only: true });
    const agent = agents[0]!;
    const window = { starts_at: domain.now(), ends_at: domain.now() + 100, reason: 'patching', selector: 'role=web' };
    await createWindow(context, actor, window);
    domain.connected.delete(agent.id);
    const id = await start({ offline: 'queue' });
    const single = { kind: 'apply', modules: [], queue: true } as const;
    const operation = await submitOperation(context, actor, agent.id, single);
    const planned = await submitOperation(context, actor, agent.id, { ...single, kind: 'plan' });
    domain.clock.advance(101_000);
    domain.connected.add(agent.id);
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(planned);
    const upkeep = startUpkeep(context, domain.clock);
    await upkeep.round();
    expect((await getOperation(context, operation)).status).toBe('expired');
    expect(await outcomes(id)).toEqual(['expired: the agent did not connect in time']);
    await upkeep.stop();
  });

  test('records the plan findings of an audit run as drift in its own modules', async () => {
    const { domain, context, actor, agents, start, execute, events } = await open(fixture, 1, { mode: 'audit' });
    await uploadModule(context, actor, 'other', fileModule('other'));
    await createAssignment(context, actor, { name: 'other', modules: ['other'], selector: 'role=web' });
    expect(await code(start())).toBe('assignment_audits');
    const own = resultOf({ status: 'would_change', module: 'motd' });
    const foreign = resultOf({ status: 'would_change', module: 'other', identity: '/etc/other' });
    const plan = async (results: ReturnType<typeof resultOf>[]) => {
      const id = await start({ kind: 'plan' });
      const operation = await execute(agents[0]!, 'succeeded', results);
      await awaitRun(context, domain.waiting, id);
      const record = await latestDrift(context, agents[0]!.id);
      expect(record).toMatchObject({ drift_id: operation?.operation_id, trigger: 'audit' });
      return record;
    };
    expect(await plan([own, foreign])).toMatchObject({
      status: 'drifted',
      resources: [{ module: 'motd' }],
      summary: { total: 1, changed: 1 },
    });
    expect(await plan([{ ...own, status: 'unchanged', action: 'none' }, foreign])).toMatchObject({
      status: 'in_sync',
      resources: [],
    });
    expect(await events('drift')).toEqual(['drift.detected', 'drift.resolved']);
    // Findings from another audit assignment neither cause nor clear events for this assignment.
    await plan([own]);
    await createAssignment(context, actor, {
      name: 'audited',
      modules: ['other'],
      selector: 'role=web',
      mode: 'audit',
    });
    const clean = { ...foreign, status: 'unchanged', action: 'none' } as const;
    await startRun(context, domain.conductor, actor, 'audited', { kind: 'plan' });
    await execute(agents[0]!, 'succeeded', [own, clean]);
    await plan([own]);
    expect(await events('drift')).toEqual(['drift.detected', 'drift.resolved', 'drift.detected']);
  });
});
