import { afterEach, expect, test, vi } from 'vitest';
import { placeAll } from '../../../test/audit.ts';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { connect, type Key, newAdmin, newAgent, reportsOf, resultOf } from '../../../test/domain.ts';
import { getRun } from '../../../test/reading.ts';
import { close, openPair, type ReplicaDomain, suspendedBefore } from '../../../test/replicas.ts';
import { withOverrides } from '../../store/database.ts';
import { openRuns, trackedResults } from '../../store/queries/runs.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { createVerifier } from '../audit/audit-verification.ts';
import { createAssignment } from '../modules/assignments.ts';
import { uploadModule } from '../modules/modules.ts';
import { listOperations } from '../operations/operations.ts';
import { Leases } from '../shared/leases.ts';
import type { RunRequest } from './run-basis.ts';
import { createRunConductor, type RunConductor } from './run-conductor.ts';
import { startRun } from './runs.ts';

const motd = `name: motd
supports: [{ platform: linux }]
resources:
  - id: file
    resource: { file-unix: { path: /etc/motd, content: hi } }
`;

describeDatabases('runs conducted by two processes', (fixture) => {
  const conductors: RunConductor[] = [];
  afterEach(async () => {
    for (const conductor of conductors.splice(0)) await conductor.stop();
  });

  const conduct = ({ context, leases }: ReplicaDomain, from = context) => {
    const conductor = createRunConductor(from, { maxConcurrent: 1000, leases });
    conductors.push(conductor);
    return conductor;
  };

  const open = async (count: number) => {
    const [one, two] = await openPair(fixture);
    const { context } = one;
    const { actor } = await newAdmin(one);
    const agents: Key[] = [];
    for (let i = 0; i < count; i++) {
      agents.push(await newAgent(one, actor, `web-${i}`));
      await putOneTag(context, actor, `web-${i}`, 'role', 'web');
    }
    // Sorts the agents by their turn.
    agents.sort((a, b) => (a.id < b.id ? -1 : 1));
    await uploadModule(context, actor, 'motd', motd);
    await createAssignment(context, actor, { name: 'base', modules: ['motd'], selector: 'role=web' });
    const start = (conductor: RunConductor, request: Partial<RunRequest> = {}) =>
      startRun(context, conductor, actor, 'base', { kind: 'apply', ...request });
    /** All agents connect to the second process. */
    const moveAgents = async () => {
      one.connected.clear();
      for (const agent of agents) await connect(two, agent);
    };
    const seqs = new Map<string, number>();
    const execute = async ({ links, now }: ReplicaDomain, agent: Key, status: 'succeeded' | 'failed' = 'succeeded') => {
      const next = await links.nextOperation(agent.id);
      expect(next).not.toBeNull();
      const seq = (seqs.get(agent.id) ?? 0) + 1;
      seqs.set(agent.id, seq);
      const reports = reportsOf(next!.operation.operation_id, [resultOf()], { now: now(), status });
      await links.reported(agent.id, '01'.repeat(16), seq, reports);
    };
    /** The stored results, in the order of the turns. */
    const statuses = async (run_id: string) => {
      const rows = await context.db.all(trackedResults, { run_id });
      return agents.map(({ id }) => rows.find(({ node_id }) => node_id === id)?.status);
    };
    const until = (id: string, ...wanted: string[]) =>
      vi.waitFor(async () => expect(await statuses(id)).toEqual(wanted));
    const advance = (ms: number) => {
      one.clock.advance(ms);
      two.clock.advance(ms);
    };
    return { one, two, agents, start, execute, until, advance, moveAgents };
  };

  /** Every agent has exactly one operation, and the chain is complete. */
  const expectWhole = async ({ context }: ReplicaDomain, domain: ReplicaDomain, id: string, agents: number) => {
    expect(new Set((await getRun(context, id)).results.map(({ operation_id }) => operation_id)).size).toBe(agents);
    expect((await listOperations(context, {})).operations).toHaveLength(agents);
    expect((await listAudit(context, { event_type: 'run.ended' })).events).toHaveLength(1);
    await placeAll(domain);
    const verdict = await createVerifier(context).verify(new AbortController().signal);
    expect(verdict).toMatchObject({ ok: true, unchained: 0 });
  };

  test('continues canaries and batches after the conducting process was closed', async () => {
    const { one, two, agents, start, execute, until, moveAgents } = await open(4);
    const first = conduct(one);
    const id = await start(first, { canary: 1, batch: 2 });
    await until(id, 'queued', 'waiting', 'waiting', 'waiting');
    const second = conduct(two);
    await moveAgents();
    await execute(two, agents[0]!);
    // The first process still holds the shard.
    await second.sweep();
    await until(id, 'succeeded', 'waiting', 'waiting', 'waiting');
    await close(two.context, one.context.incarnation);
    await second.sweep();
    await until(id, 'succeeded', 'queued', 'queued', 'waiting');
    await execute(two, agents[1]!);
    await until(id, 'succeeded', 'succeeded', 'queued', 'queued');
    // The first process resumes, and conducts nothing.
    await first.advance(id);
    await first.sweep();
    await execute(two, agents[2]!);
    await execute(two, agents[3]!);
    await until(id, 'succeeded', 'succeeded', 'succeeded', 'succeeded');
    await vi.waitFor(async () => expect((await getRun(two.context, id)).status).toBe('succeeded'));
    await expectWhole(two, two, id, 4);
  });

  test('refuses a wave of a process that was suspended before it committed', async () => {
    const { one, two, agents, start, execute, until } = await open(3);
    const suspended = suspendedBefore(one.context, 'runs/queue');
    const first = conduct(one, suspended.context);
    const starting = start(first, { batch: 1 });
    await suspended.reached;
    const [run] = await two.db.all(openRuns, {});
    const id = run!.run_id;
    await close(two.context, one.context.incarnation);
    const second = conduct(two);
    // The agent that the first process has chosen is disconnected, so the second process chooses another agent.
    await connect(two, agents[1]!);
    await connect(two, agents[2]!);
    await second.sweep();
    await until(id, 'waiting', 'queued', 'waiting');
    suspended.resume();
    await starting;
    await until(id, 'waiting', 'queued', 'waiting');
    await connect(two, agents[0]!);
    await execute(two, agents[1]!);
    await until(id, 'queued', 'succeeded', 'waiting');
    await execute(two, agents[0]!);
    await until(id, 'succeeded', 'succeeded', 'queued');
    await execute(two, agents[2]!);
    await vi.waitFor(async () => expect((await getRun(two.context, id)).status).toBe('succeeded'));
    await expectWhole(two, two, id, 3);
  });

  test('starts the wait for absent agents at the takeover', async () => {
    const { one, two, agents, start, execute, until, advance } = await open(2);
    const id = await start(conduct(one), { offline: 'report', batch: 1 });
    await until(id, 'queued', 'waiting');
    advance(600_000);
    await close(two.context, one.context.incarnation);
    const second = conduct(two);
    await second.sweep();
    await connect(two, agents[0]!);
    await execute(two, agents[0]!);
    await second.sweep();
    await until(id, 'succeeded', 'waiting');
    advance(59_000);
    await second.sweep();
    await until(id, 'succeeded', 'waiting');
    advance(2_000);
    await second.sweep();
    await until(id, 'succeeded', 'failed');
  });

  test('transfers a run when another process should conduct it', async () => {
    const { one, two, agents, start, execute, until, moveAgents } = await open(2);
    two.placement.isPreferred = () => false;
    const first = conduct(one);
    const second = conduct(two);
    const id = await start(first, { batch: 1 });
    await until(id, 'queued', 'waiting');
    await second.sweep();
    await moveAgents();
    one.placement.isPreferred = () => false;
    two.placement.isPreferred = () => true;
    await first.sweep();
    await second.sweep();
    await execute(two, agents[0]!);
    await until(id, 'succeeded', 'queued');
    await execute(two, agents[1]!);
    await vi.waitFor(async () => expect((await getRun(two.context, id)).status).toBe('succeeded'));
    await expectWhole(two, two, id, 2);
  });

  test('starts another process’s run immediately after a hint', async () => {
    const { one, two, start, until, moveAgents } = await open(1);
    one.placement.isPreferred = () => false;
    const first = conduct(one);
    conduct(two);
    await moveAgents();
    one.context.bus.subscribe((hint) => two.context.bus.publish(hint));
    await until(await start(first), 'queued');
  });

  test('releases its shards when it stops, so that another process continues immediately', async () => {
    const { one, two, agents, start, execute, until, moveAgents } = await open(2);
    const first = conduct(one);
    const second = conduct(two);
    const id = await start(first, { batch: 1 });
    await until(id, 'queued', 'waiting');
    await first.stop();
    await second.sweep();
    await moveAgents();
    await execute(two, agents[0]!);
    await until(id, 'succeeded', 'queued');
  });

  test('reads a run again if another process has conducted it in the meantime', async () => {
    const { one, two, agents, start, execute, until, advance } = await open(4);
    const id = await start(conduct(one), { batch: 1 });
    await until(id, 'queued', 'waiting', 'waiting', 'waiting');
    await close(two.context, one.context.incarnation);
    const second = conduct(two);
    for (const agent of agents) await connect(two, agent);
    await second.sweep();
    await execute(two, agents[0]!);
    await until(id, 'succeeded', 'queued', 'waiting', 'waiting');
    await execute(two, agents[1]!);
    await until(id, 'succeeded', 'succeeded', 'queued', 'waiting');
    await second.stop();
    // The first process acquires the shard again when it checks its leases.
    advance(5_000);
    await connect(one, agents[2]!);
    await execute(one, agents[2]!);
    await until(id, 'succeeded', 'succeeded', 'succeeded', 'queued');
  });

  test('detects outcomes that another process recorded', async () => {
    const { one, two, agents, start, execute, until } = await open(3);
    const first = conduct(one);
    const id = await start(first, { batch: 1 });
    await until(id, 'queued', 'waiting', 'waiting');
    await connect(two, agents[0]!);
    await execute(two, agents[0]!);
    await first.sweep();
    await until(id, 'succeeded', 'queued', 'waiting');
    await connect(two, agents[1]!);
    await execute(two, agents[1]!);
    await first.sweep();
    await until(id, 'succeeded', 'succeeded', 'queued');
  });

  test('halts a run whose failures another process recorded, before it starts further agents', async () => {
    const { one, two, agents, start, execute, until } = await open(4);
    const id = await start(conduct(one), { batch: 2, max_failures: 0 });
    await until(id, 'queued', 'queued', 'waiting', 'waiting');
    await connect(two, agents[0]!);
    await execute(two, agents[0]!, 'failed');
    await execute(one, agents[1]!);
    await until(id, 'failed', 'succeeded', 'cancelled', 'cancelled');
  });

  test('reads a run once more after the process that recorded a failure has ended', async () => {
    const { one, two, agents, start, execute, until } = await open(4);
    const id = await start(conduct(one), { batch: 2, max_failures: 0 });
    await until(id, 'queued', 'queued', 'waiting', 'waiting');
    await connect(two, agents[0]!);
    await execute(two, agents[0]!, 'failed');
    Object.assign(one.placement, { shared: false, peerLeftAt: 1 });
    await execute(one, agents[1]!);
    await until(id, 'failed', 'succeeded', 'cancelled', 'cancelled');
  });

  test('waits for absent agents after it takes over a run that it had begun for another process', async () => {
    const { one, two, agents, start, execute, until, advance } = await open(2);
    two.placement.isPreferred = () => false;
    const first = conduct(one);
    const second = conduct(two);
    const id = await start(second, { offline: 'report', batch: 1 });
    await first.sweep();
    await until(id, 'queued', 'waiting');
    advance(600_000);
    await close(two.context, one.context.incarnation);
    two.placement.isPreferred = () => true;
    await second.sweep();
    await connect(two, agents[0]!);
    await execute(two, agents[0]!);
    await second.sweep();
    await until(id, 'succeeded', 'waiting');
  });

  test('transfers its shards before it stops, with one transaction on each side', async () => {
    const { one, two, agents, start, execute, until, moveAgents } = await open(2);
    const units: string[] = [];
    const counting = (domain: ReplicaDomain): ReplicaDomain => {
      const { db } = domain.context;
      const write: typeof db.write = (unit) => {
        if (unit.name.startsWith('leases/')) units.push(unit.name);
        return db.write(unit);
      };
      const context = { ...domain.context, db: withOverrides(db, { write }) };
      return { ...domain, context, leases: new Leases(context, domain.placement) };
    };
    two.placement.isPreferred = () => false;
    const first = conduct(counting(one));
    const second = conduct(counting(two));
    const id = await start(first, { batch: 1 });
    await until(id, 'queued', 'waiting');
    one.placement.isPreferred = () => false;
    two.placement.isPreferred = () => true;
    await first.handOver();
    await second.sweep();
    expect(units).toEqual(['leases/take', 'leases/release', 'leases/take']);
    await moveAgents();
    await execute(two, agents[0]!);
    await until(id, 'succeeded', 'queued');
  });

  test('stops although the database does not answer', async () => {
    const { one } = await open(0);
    const answers = Promise.withResolvers<void>();
    const { db } = one.context;
    const all: typeof db.all = async (query, params) => {
      await answers.promise;
      return db.all(query, params);
    };
    const context = { ...one.context, db: withOverrides(db, { all }) };
    const leases = new Leases(context, one.placement);
    const conductor = createRunConductor(context, { maxConcurrent: 1000, leases, transferMs: 50 });
    let isStopped = false;
    const stopped = conductor
      .handOver()
      .then(() => conductor.stop())
      .then(() => {
        isStopped = true;
      });
    await vi.waitFor(() => expect(isStopped).toBe(true)).finally(() => answers.resolve());
    await stopped;
    expect(leases.counts.held).toBe(0);
    await leases.release([]);
  });
});
