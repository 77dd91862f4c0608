import { beforeEach, describe, expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import {
  connect,
  type Domain,
  type Key,
  newAdmin,
  newAgent,
  openDomain,
  reportsOf,
  resultOf,
} from '../../../test/domain.ts';
import { joined } from '../../../test/replicas.ts';
import { type DriftSweep, startDriftSweep } from '../../schedule/drift-sweep.ts';
import { agentState } from '../../store/queries/state.ts';
import { setStatus } from '../agents/agents.ts';
import { listAudit } from '../audit/audit.ts';
import { uploadModule } from '../modules/modules.ts';
import { expireQueued } from '../operation-end/operation-expiry.ts';
import { submitOperation } from '../operations/operations.ts';
import { createLease } from '../shared/leases.ts';
import { latestDrift, listDrift, submitDriftCheck } from './drift.ts';
import { decide, nextDue, type SweepRules } from './drift-sweep.ts';

const module = 'name: m\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /f } } }]\n';
const rules: SweepRules = { interval: 3600, maxConcurrent: 2, skipRecentlyApplied: 300, random: () => 0.5 };
const unchanged = resultOf({ identity: '/f', action: 'none', status: 'unchanged' });
const moved = resultOf({
  identity: '/f',
  status: 'would_change',
  changes: [{ field: 'mode', from: '0600', to: '0644' }],
});

describe('decide', () => {
  const row = {
    status: 'approved',
    connected_at: 900,
    snapshot_operation_id: 'x',
    updated_at: 1000,
    open_operation: null,
    latest_status: null,
    latest_snapshot: null,
  } as const;
  test('checks a due machine immediately, or postpones the check until it is possible', () => {
    expect(decide(row, true, 2000, rules)).toBe('check');
    expect(decide(row, false, 2000, rules)).toEqual({ due: null });
    expect(decide({ ...row, connected_at: 1941 }, false, 2000, rules)).toEqual({ due: 2015 });
    expect(decide({ ...row, connected_at: 2061 }, false, 2000, rules)).toEqual({ due: null });
    expect(decide({ ...row, status: 'rejected' }, true, 2000, rules)).toEqual({ due: null });
    expect(decide({ ...row, snapshot_operation_id: null }, true, 2000, rules)).toEqual({ due: null });
    expect(decide({ ...row, open_operation: 'o' }, true, 2000, rules)).toEqual({ due: 2015 });
    expect(decide(row, true, 1299, { ...rules, random: () => 0 })).toEqual({ due: 1300 });
    expect(decide(row, true, 1300, rules)).toBe('check');
    // The clock was set back after the apply.
    expect(decide({ ...row, updated_at: 9000 }, true, 2000, { ...rules, random: () => 0 })).toEqual({ due: 2300 });
  });

  test('checks a machine right after an apply when its latest record is outdated', () => {
    const after = { ...row, latest_status: 'drifted', latest_snapshot: 'w' } as const;
    expect(decide(after, true, 1001, rules)).toBe('check');
    expect(decide({ ...after, open_operation: 'o' }, true, 1001, rules)).toEqual({ due: 1016 });
    for (const other of [{ latest_snapshot: 'x' }, { latest_status: 'in_sync' }] as const)
      expect(decide({ ...after, ...other }, true, 1001, { ...rules, random: () => 0 })).toEqual({ due: 1300 });
  });

  test('spreads the next checks of machines over time', () => {
    expect(nextDue(1000, { ...rules, random: () => 0 })).toBe(1000 + 3240);
    expect(nextDue(1000, { ...rules, random: () => 0.999_999 })).toBe(1000 + 3960);
    expect(nextDue(1000, { ...rules, interval: 1, random: () => 0 })).toBe(1001);
  });
});

describeAnyDatabase('the drift sweep', (fixture) => {
  let seq = 0;
  let sweeps: DriftSweep[] = [];
  beforeEach(() => {
    sweeps = [];
  });
  const report = async (
    { links, now }: Domain,
    agent: Key,
    id: string,
    results = [unchanged],
    status: 'succeeded' | 'failed' = 'succeeded',
  ) => {
    const reports = reportsOf(id, results, { now: now(), status });
    expect(await links.reported(agent.id, '01'.repeat(16), ++seq, reports)).toBe(null);
    // A finished check triggers a sweep, which must not run during a later apply.
    for (const one of sweeps) await one.settled();
  };

  const open = async (names: string[]) => {
    const domain = await openDomain(fixture);
    const { context, clock, links } = domain;
    const { actor } = await newAdmin(domain);
    await uploadModule(context, actor, 'm', module);
    const agents: Key[] = [];
    const apply = async (agent: Key, results = [unchanged]) => {
      const request = { kind: 'apply', modules: ['m'], queue: true } as const;
      const id = await submitOperation(context, actor, agent.id, request);
      expect((await links.nextOperation(agent.id))?.operation.operation_id).toBe(id);
      await report(domain, agent, id, results);
    };
    for (const name of names) {
      const agent = await newAgent(domain, actor, name);
      agents.push(agent);
      await apply(agent);
    }
    const sweep = (more: Partial<SweepRules> = {}) => {
      const lease = createLease(context, 'drift-sweep');
      const one = startDriftSweep(context, clock, { ...rules, ...more, lease });
      sweeps.push(one);
      return one;
    };
    /** Runs the operations of all agents. Returns the agents that ran a check. */
    const answer = async (results = [unchanged]) => {
      const checked: number[] = [];
      for (const [i, agent] of agents.entries()) {
        const next = await links.nextOperation(agent.id);
        if (next?.operation.kind !== 'drift') continue;
        checked.push(i);
        await report(domain, agent, next.operation.operation_id, results);
      }
      return checked;
    };
    const due = async (agent: Key) => (await domain.db.get(agentState, { node_id: agent.id }))?.drift_due_at;
    const eventTypes = async () => {
      const { events } = await listAudit(context, { category: 'drift', limit: 100 });
      return events.map(({ event_type }) => event_type).reverse();
    };
    return { domain, context, clock, actor, agents, apply, sweep, answer, due, eventTypes };
  };

  test('checks every machine once per interval, except shortly after an apply, and limits concurrent checks', async () => {
    const { domain, clock, actor, agents, sweep, answer, apply } = await open(['a', 'b', 'c']);
    await newAgent(domain, actor, 'never-applied');
    const one = sweep();
    await one.turn();
    expect(await answer()).toEqual([]);
    clock.advance(700_000);
    await apply(agents[1]!);
    await one.turn();
    await one.turn();
    expect(await answer()).toEqual([0, 2]);
    await one.turn();
    expect(await answer()).toEqual([]);
    clock.advance(660_000);
    await one.turn();
    expect(await answer()).toEqual([1]);
    clock.advance(3_000_000);
    await one.turn();
    expect(await answer()).toEqual([0, 2]);
    const [record] = (await listDrift(domain.context, 'a', { limit: 9, offset: 0 })).items;
    expect(record).toMatchObject({ trigger: 'schedule', status: 'in_sync' });
    await one.stop();
  });

  test('respects the concurrent-check limit, and continues as soon as a check ends', async () => {
    const { clock, sweep, agents, domain } = await open(['a', 'b', 'c', 'd', 'e']);
    clock.advance(700_000);
    const one = sweep();
    await one.turn();
    const waiting = () => Promise.all(agents.map(({ id }) => domain.links.nextOperation(id)));
    expect((await waiting()).filter(Boolean).length).toBe(2);
    await one.turn();
    expect((await waiting()).filter(Boolean).length).toBe(2);
    // The hint that a check has ended triggers the next check without the timer.
    const first = (await waiting()).findIndex((next) => next !== null);
    await report(domain, agents[first]!, (await waiting())[first]!.operation.operation_id);
    await vi.waitFor(async () => expect((await waiting()).filter(Boolean).length).toBe(2));
    expect((await waiting())[first]).toBe(null);
    // Checks of disconnected agents do not count toward the maximum.
    for (const [i, next] of (await waiting()).entries()) if (next) domain.connected.delete(agents[i]!.id);
    await one.turn();
    const rest = (await waiting()).filter((next, i) => next && domain.connected.has(agents[i]!.id));
    expect(rest.length).toBe(2);
    await one.stop();
  });

  test('checks a machine that missed its check as soon as it reconnects', async () => {
    const { domain, clock, agents, sweep, answer, due } = await open(['a', 'b']);
    const [away] = agents as [Key, Key];
    domain.connected.delete(away.id);
    clock.advance(4_000_000);
    const one = sweep();
    await one.turn();
    expect(await answer()).toEqual([1]);
    expect(await due(away)).toBe(null);
    await one.stop();
    const other = sweep();
    await connect(domain, away);
    expect(await due(away)).toBe(domain.now());
    await other.turn();
    expect(await answer()).toEqual([0]);
    await other.stop();
  });

  test('does not miss a machine that reconnects during the sweep', async () => {
    const { domain, context, clock, agents, sweep, answer } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(700_000);
    domain.connected.delete(agent.id);
    const write = context.db.write.bind(context.db);
    vi.spyOn(context.db, 'write').mockImplementation(async (unit) => {
      if (unit.name === 'drift/move') await connect(domain, agent);
      return write(unit);
    });
    const one = sweep();
    await one.turn();
    await one.turn();
    expect(await answer()).toEqual([0]);
    await one.stop();
  });

  test('does not miss a machine whose connection is recorded before it counts as connected', async () => {
    const { domain, clock, agents, sweep, answer } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(700_000);
    await connect(domain, agent);
    domain.connected.delete(agent.id);
    const one = sweep();
    await one.turn();
    domain.connected.add(agent.id);
    clock.advance(15_000);
    await one.turn();
    expect(await answer()).toEqual([0]);
    await one.stop();
  });

  test('makes a machine due again when its check expires', async () => {
    const { domain, context, clock, agents, sweep, answer, due } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(700_000);
    const one = sweep();
    await one.turn();
    domain.connected.delete(agent.id);
    clock.advance(301_000);
    await expireQueued(context);
    await one.turn();
    expect(await due(agent)).toBe(null);
    await connect(domain, agent);
    await one.turn();
    expect(await answer()).toEqual([0]);
    await one.stop();
  });

  test('waits for a machine with open operations, and skips a rejected machine', async () => {
    const { domain, context, clock, actor, agents, sweep, due } = await open(['a', 'b']);
    const [busy, rejected] = agents as [Key, Key];
    clock.advance(700_000);
    await setStatus(context, actor, rejected.id, { status: 'rejected' });
    const request = { kind: 'plan', modules: ['m'], queue: true } as const;
    const id = await submitOperation(context, actor, busy.id, request);
    await domain.links.nextOperation(busy.id);
    const one = sweep();
    await one.turn();
    expect(await due(busy)).toBe(domain.now() + 15);
    expect(await due(rejected)).toBe(null);
    await report(domain, busy, id);
    clock.advance(15_000);
    await one.turn();
    expect((await domain.links.nextOperation(busy.id))?.operation.kind).toBe('drift');
    await one.stop();
  });

  test('sweeps in only one process at a time', async () => {
    const { domain, context, clock, sweep, answer } = await open(['a']);
    clock.advance(700_000);
    const held = createLease(await joined(context, 'elsewhere'), 'drift-sweep');
    expect(await held.hold()).not.toBe(null);
    const one = sweep();
    await one.turn();
    expect(await answer()).toEqual([]);
    await held.release();
    clock.advance(1000);
    await one.turn();
    expect(await answer()).toEqual([0]);
    await one.stop();
    expect(domain.now()).toBeGreaterThan(0);
  });

  test('corrects due times that were set with a longer interval or a fast clock', async () => {
    const { clock, agents, sweep, answer, due, domain } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(700_000);
    const slow = sweep({ interval: 1_000_000 });
    await slow.turn();
    expect(await answer()).toEqual([0]);
    expect(await due(agent)).toBeGreaterThan(domain.now() + 900_000);
    await slow.stop();
    const one = sweep();
    await one.turn();
    expect(await answer()).toEqual([0]);
    await one.stop();
  });

  test('queues a check when a hint arrives while another check runs, but not while a check is queued', async () => {
    const { domain, clock, agents, answer } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(1000);
    await domain.links.driftHinted(agent.id, ['path:/f']);
    const running = await domain.links.nextOperation(agent.id);
    // The dispatched check may have observed the machine before the change.
    await domain.links.driftHinted(agent.id, ['path:/f']);
    await domain.links.driftHinted(agent.id, ['path:/g']);
    await report(domain, agent, running!.operation.operation_id, [moved]);
    expect(await answer([moved])).toEqual([0]);
    expect(await answer([moved])).toEqual([]);
    const { items } = await listDrift(domain.context, 'a', { limit: 9, offset: 0 });
    expect(items.map(({ trigger, status }) => `${trigger} ${status}`)).toEqual(['watch drifted', 'watch drifted']);
  });

  test('brings the next check forward only after an apply that may have corrected drift', async () => {
    const { context, clock, actor, agents, sweep, answer, apply, due, domain } = await open(['a', 'b']);
    const [a, b] = agents as [Key, Key];
    const one = sweep();
    // The next check keeps its due time after the first apply, and after an apply on a machine that is in sync.
    await one.turn();
    await apply(b);
    await one.turn();
    expect(await answer()).toEqual([]);
    const checkBy = async (results: (typeof moved)[], status: 'succeeded' | 'failed' = 'succeeded') => {
      const id = await submitDriftCheck(context, actor, 'a', 'watch');
      await domain.links.nextOperation(a.id);
      await report(domain, a, id, results, status);
    };
    const latest = async () => (await latestDrift(context, 'a'))?.status;
    const changed = resultOf({ identity: '/f', status: 'changed', corrective: true });
    clock.advance(60_000);
    await checkBy([moved]);
    await one.turn();
    expect(await answer()).toEqual([]);
    // The next check keeps its due time after a failed apply.
    const before = await due(a);
    const request = { kind: 'apply', modules: ['m'], queue: true } as const;
    const failed = await submitOperation(context, actor, a.id, request);
    await domain.links.nextOperation(a.id);
    await report(domain, a, failed, [resultOf({ identity: '/f', status: 'failed' })], 'failed');
    expect(await due(a)).toBe(before);
    await one.turn();
    expect(await answer()).toEqual([]);
    await apply(a, [changed]);
    expect(await due(a)).toBe(domain.now());
    expect(await latest()).toBe('drifted');
    await one.turn();
    expect(await answer()).toEqual([0]);
    expect(await latest()).toBe('in_sync');
    await one.turn();
    expect(await answer()).toEqual([]);
    // The next check is brought forward if an apply without changes follows a failed check, or follows a check that
    // found drift in resources that applies do not observe.
    await apply(a);
    await apply(a);
    await checkBy([], 'failed');
    await apply(a);
    await one.turn();
    expect(await answer([moved])).toEqual([0]);
    await one.turn();
    expect(await answer()).toEqual([]);
    expect(await latest()).toBe('drifted');
    await one.stop();
  });

  test('bounds the size of drift records', async () => {
    const { context, actor, answer, eventTypes } = await open(['a']);
    const many = (count: number, more: (i: number) => Parameters<typeof resultOf>[0]) =>
      Array.from({ length: count }, (_, i) => resultOf({ status: 'would_change', ...more(i) }));
    const storedFindings = async (results: (typeof moved)[]) => {
      await submitDriftCheck(context, actor, 'a', 'watch');
      await answer(results);
      return (await latestDrift(context, 'a'))?.resources ?? [];
    };
    const diff = 'x'.repeat(60_000);
    const large = await storedFindings([
      ...many(9, (i) => ({ identity: `/${i}`, changes: [{ field: 'content', from: null, to: null }], diff })),
      moved,
    ]);
    expect(large.map((result) => result.diff?.length ?? 0)).toEqual([...Array(4).fill(60_000), ...Array(6).fill(0)]);
    expect(large.at(-1)).toMatchObject({ identity: '/f', changes: [{ field: 'mode' }] });
    expect(large.at(5)).toMatchObject({
      identity: '/5',
      changes: [],
      message: expect.stringMatching(/details are left out/),
    });
    // Details beyond the record's limit cause no drift event.
    await storedFindings([
      ...many(9, (i) => ({
        identity: `/${i}`,
        changes: [{ field: 'content', from: null, to: null }],
        diff: i < 4 ? null : diff,
      })),
      moved,
    ]);
    expect(await eventTypes()).toEqual(['drift.detected']);
    // A row counts as 128 bytes plus its names.
    expect((await storedFindings(many(200, (i) => ({ identity: `/${i}${'y'.repeat(4_000)}` })))).length).toBe(126);
  });

  test('reports drift once until a check or an apply finds it corrected', async () => {
    const { context, domain, clock, actor, agents, sweep, answer, apply, eventTypes } = await open(['a']);
    const [agent] = agents as [Key];
    clock.advance(700_000);
    const one = sweep();
    await one.turn();
    await answer([moved]);
    await domain.links.driftHinted(agent.id, ['path:/f']);
    await answer([moved]);
    expect(await eventTypes()).toEqual(['drift.detected']);
    const other = resultOf({
      identity: '/g',
      status: 'would_change',
      changes: [{ field: 'mode', from: 'a', to: 'b' }],
    });
    await submitDriftCheck(context, actor, 'a', 'watch');
    await answer([moved, other]);
    await submitDriftCheck(context, actor, 'a', 'watch');
    await answer([other]);
    expect(await eventTypes()).toEqual(['drift.detected', 'drift.detected']);
    await apply(agent, [unchanged, resultOf({ identity: '/g', status: 'failed' })]);
    expect((await eventTypes()).length).toBe(2);
    await apply(agent, [unchanged, resultOf({ identity: '/g', status: 'changed', corrective: true })]);
    expect(await eventTypes()).toEqual(['drift.detected', 'drift.detected', 'drift.resolved']);
    await apply(agent);
    await submitDriftCheck(context, actor, 'a', 'watch');
    await answer([moved]);
    // An operator corrects the drift by hand, and an apply without changes confirms that.
    await apply(agent);
    await apply(agent);
    expect((await eventTypes()).slice(3)).toEqual(['drift.detected', 'drift.resolved']);
    // An incomplete check reports the drift it found, but does not clear other drift.
    await submitDriftCheck(context, actor, 'a', 'watch');
    const next = await domain.links.nextOperation(agent.id);
    const half = [moved, resultOf({ identity: '/g', status: 'failed' })];
    await report(domain, agent, next!.operation.operation_id, half, 'failed');
    expect((await latestDrift(context, 'a'))?.status).toBe('drifted');
    await submitDriftCheck(context, actor, 'a', 'watch');
    await answer([moved, other]);
    expect((await eventTypes()).slice(5)).toEqual(['drift.detected', 'drift.detected']);
    await one.stop();
  });
});
