import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { getOperation, getState } from '../../../test/reading.ts';
import { setStatus } from '../agents/agents.ts';
import { createOffRanking } from '../drift/off-ranking.ts';
import { listReconcile } from '../drift/reconcile.ts';
import { uploadModule } from '../modules/modules.ts';
import { createWindow } from '../modules/windows.ts';
import { cancelOperation } from '../operation-end/cancellation.ts';
import { submitOperation } from '../operations/operations.ts';
import { createAgentLinks } from './agent-link-service.ts';

const motd = `name: motd
supports: [{ platform: linux }]
resources:
  - id: motd
    resource: { file-unix: { path: /etc/motd, content: "hi" } }
`;
const instance = '01'.repeat(16);
/** Waits for the event-loop turn in which hints are delivered. */
const hintsDelivered = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

async function open(fixture: Parameters<Parameters<typeof describeAnyDatabase>[1]>[0]) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await uploadModule(domain.context, actor, 'motd', motd);
  const submit = async (name = 'web-1', ttl?: number) => {
    const request = { kind: 'apply', modules: ['motd'], queue: false, ttl } as const;
    const id = await submitOperation(domain.context, actor, name, request);
    await hintsDelivered();
    return id;
  };
  let seq = 0;
  const execute = async (
    results = [resultOf()],
    status: 'succeeded' | 'failed' = 'succeeded',
    links = domain.links,
  ) => {
    const id = await submit();
    expect((await links.nextOperation(agent.id))?.operation.operation_id).toBe(id);
    await links.reported(agent.id, instance, ++seq, reportsOf(id, results, { now: domain.now(), status }));
    return id;
  };
  const reads = [vi.spyOn(domain.db, 'all'), vi.spyOn(domain.db, 'get')];
  const readsOf = (name: string) =>
    reads.flatMap(({ mock }) => mock.calls).filter(([query]) => query.name === name).length;
  return { domain, context: domain.context, actor, agent, submit, execute, readsOf };
}

describeAnyDatabase('dispatch of newly queued operations', (fixture) => {
  test('dispatches to all agents in one event-loop turn with one write and no reads', async () => {
    const { domain, context, actor, agent, submit, readsOf } = await open(fixture);
    const other = await newAgent(domain, actor, 'web-2');
    const ids = [await submit(), await submit('web-2')];
    const writes = vi.spyOn(domain.db, 'write');
    const handed = await Promise.all([agent, other].map(({ id }) => domain.links.nextOperation(id)));
    expect(handed).toEqual(
      ids.map((operation_id) => ({
        operation: {
          type: 'operation',
          operation_id,
          kind: 'apply',
          modules: ['motd'],
          resources: [expect.objectContaining({ key: 'path:/etc/motd' })],
          keep_modules: [],
          snapshot_operation_id: null,
        },
        more: false,
      })),
    );
    expect(writes).toHaveBeenCalledTimes(1);
    expect(readsOf('operations/oldest open') + readsOf('operations/payloads reported on')).toBe(0);
    // A dispatched operation is sent again. Only the agent's report ends it.
    expect((await domain.links.nextOperation(agent.id))?.operation.operation_id).toBe(ids[0]);
    await cancelOperation(context, actor, ids[0]!);
    expect((await getOperation(context, ids[0]!)).status).toBe('queued');
  });

  test('sends the end of the maintenance window to agents whose reboots wait for one', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    const reboots = (field: string) =>
      `name: motd\nsupports: [{ platform: linux }]\nresources: [{ resource: { reboot: { name: kernel${field} } } }]\n`;
    const sent = async () => {
      const id = await submit();
      const { operation } = (await domain.links.nextOperation(agent.id)) ?? {};
      await domain.links.reported(agent.id, instance, ++seq, reportsOf(id, [], { now: domain.now() }));
      return operation;
    };
    let seq = 0;
    await uploadModule(context, actor, 'motd', reboots(', window_only: true'));
    expect(await sent()).not.toHaveProperty('window_ends_at');
    const starts_at = domain.now();
    const times = { starts_at, ends_at: starts_at + 60, reason: 'kernel' };
    await createWindow(context, actor, { ...times, selector: 'role=other' });
    expect(await sent()).not.toHaveProperty('window_ends_at');
    await createWindow(context, actor, times);
    expect(await sent()).toMatchObject({ window_ends_at: starts_at + 60 });
    await uploadModule(context, actor, 'motd', reboots(''));
    expect(await sent()).not.toHaveProperty('window_ends_at');
  });

  test('dispatches an agent’s operations in order', async () => {
    const { domain, agent, submit } = await open(fixture);
    const first = await submit();
    await submit();
    expect(await domain.links.nextOperation(agent.id)).toMatchObject({
      operation: { operation_id: first },
      more: true,
    });
  });

  test('dispatches nothing while an operation runs, even one that another process dispatched', async () => {
    const { domain, context, agent, submit } = await open(fixture);
    const other = createAgentLinks(
      context,
      domain.refusals,
      domain.pending,
      async () => {},
      domain.liveOutput,
      domain.rules,
    );
    const first = await submit();
    await other.nextOperation(agent.id);
    await other.reported(agent.id, instance, 1, [{ type: 'accepted', operation_id: first }]);
    await domain.links.nextOperation(agent.id);
    await submit();
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
  });

  test('sends no operation that was canceled or expired, or whose agent was rejected', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    // Cached state changes only through hints, which this context does not publish.
    const silent = { ...context, bus: { ...context.bus, publish: () => {} } };
    await cancelOperation(silent, actor, await submit());
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    await submit('web-1', 60);
    domain.clock.advance(61_000);
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    const other = await newAgent(domain, actor, 'web-2');
    await submit('web-2');
    await setStatus(silent, actor, other.id, { status: 'rejected' });
    expect(await domain.links.nextOperation(other.id)).toBeNull();
  });
});

describeAnyDatabase('an apply that changes nothing', (fixture) => {
  const asItWas = () => [resultOf({ action: 'none', status: 'unchanged' })];

  test('skips the comparison with applied state when the previous apply had the same desired state', async () => {
    const { context, domain, execute, readsOf } = await open(fixture);
    const first = await execute();
    await execute(asItWas());
    const before = readsOf('state/by keys');
    domain.clock.advance(5_000);
    const last = await execute(asItWas());
    expect(readsOf('state/by keys')).toBe(before);
    expect(await getState(context, 'web-1')).toMatchObject({
      applied: [{ identity: '/etc/motd', operation_id: first }],
      snapshot_operation_id: last,
      updated_at: domain.now(),
    });
    expect(await getOperation(context, last)).toMatchObject({
      status: 'succeeded',
      started_at: domain.now(),
      resources: [{ status: 'unchanged' }],
    });
  });

  test.each([
    ['one that failed', [resultOf({ status: 'failed', message: 'no' })], 'failed'],
    ['one that removed it', [resultOf({ action: 'remove' })], 'succeeded'],
    ['one of something else', [resultOf({ identity: '/etc/issue', action: 'none', status: 'unchanged' })], 'succeeded'],
  ] as const)('compares with applied state after %s, in every process', async (_what, results, status) => {
    const { context, domain, agent, execute } = await open(fixture);
    const other = createAgentLinks(
      context,
      domain.refusals,
      domain.pending,
      async () => {},
      domain.liveOutput,
      domain.rules,
    );
    for (const links of [domain.links, other]) {
      await execute(asItWas());
      await execute(asItWas());
      await execute([...results], status, links);
      // An agent that was connected to the second process sends a hello when it returns.
      if (links === other) await connect(domain, { id: agent.id, hex: agent.hex, sign: agent.sign });
      const last = await execute(asItWas());
      const { applied, unapplied, snapshot_operation_id } = await getState(context, 'web-1');
      expect(applied.map(({ identity }) => identity)).toContain('/etc/motd');
      expect(unapplied).toEqual([]);
      expect(snapshot_operation_id).toBe(last);
    }
  });

  test('compares with applied state when another operation ran in between', async () => {
    const { context, domain, execute } = await open(fixture);
    const other = createAgentLinks(
      context,
      domain.refusals,
      domain.pending,
      async () => {},
      domain.liveOutput,
      domain.rules,
    );
    await execute(asItWas());
    const changed = await execute([resultOf({ action: 'update' })], 'succeeded', other);
    const last = await execute(asItWas());
    expect(await getState(context, 'web-1')).toMatchObject({
      applied: [{ identity: '/etc/motd', operation_id: changed }],
      snapshot_operation_id: last,
    });
  });
});

describeAnyDatabase('a resource with a condition that the machine decides', (fixture) => {
  const conditioned = `name: conditioned
supports: [{ platform: linux }]
resources:
  - { id: a, only_if: { exists: /opt }, resource: { file-unix: { path: /etc/a, content: "a" } } }
  - { id: b, depends_on: [a], resource: { file-unix: { path: /etc/b, content: "b" } } }
`;
  const openWith = async () => {
    const opened = await open(fixture);
    await uploadModule(opened.context, opened.actor, 'conditioned', conditioned);
    const submitFor = (kind: 'apply' | 'plan', modules = ['conditioned']) =>
      submitOperation(opened.context, opened.actor, 'web-1', {
        kind,
        modules,
        queue: true,
      });
    return { ...opened, submitFor };
  };

  test('sends no resource with only_if to an agent that does not support it', async () => {
    const { domain, context, agent, submitFor } = await openWith();
    for (const kind of ['apply', 'plan'] as const) {
      const refused = await submitFor(kind);
      expect(await domain.links.nextOperation(agent.id, 5)).toBeNull();
      expect(await getOperation(context, refused)).toMatchObject({
        status: 'failed',
        error:
          'a module has a resource with `only_if`, and the agent web-1 (version 0.1.0, protocol 5) does not support it; upgrade the agent, then request the operation again',
      });
    }
    const other = await submitFor('apply', ['motd']);
    expect((await domain.links.nextOperation(agent.id, 5))?.operation.operation_id).toBe(other);
  });

  test('sends only_if with a command, a negation, or a list to agents that support it', async () => {
    const { domain, context, actor, agent, submitFor } = await openWith();
    for (const [name, condition] of Object.entries({
      command: '{ command: "true" }',
      negation: '{ not: { exists: /opt } }',
      list: '[{ exists: /opt }, { command: "true" }]',
    })) {
      const module = conditioned.replace('conditioned', name).replace('{ exists: /opt }', condition);
      await uploadModule(context, actor, name, module);
      const refused = await submitFor('apply', [name]);
      expect(await domain.links.nextOperation(agent.id, 6)).toBeNull();
      expect((await getOperation(context, refused)).error).toContain(
        'a module has an `only_if` with `command`, `not`, or a list, and the agent web-1 (version 0.1.0, protocol 6) does not support it',
      );
    }
    const single = conditioned.replace('conditioned', 'single').replace('{ exists: /opt }', '[{ exists: /opt }]');
    await uploadModule(context, actor, 'single', single);
    await submitFor('apply', ['single']);
    const sent = await domain.links.nextOperation(agent.id, 6);
    expect(sent?.operation.resources[0]).toMatchObject({ only_if: { exists: '/opt' } });
  });

  test('sends no immediate triggers to an agent that does not support them', async () => {
    const { domain, context, actor, agent, submitFor } = await openWith();
    const module = `name: live
supports: [{ platform: linux }]
resources:
  - { id: a, resource: { file-unix: { path: /etc/a } } }
  - { resource: { service-systemd: { name: s, reload_on: [{ id: a, immediately: true }] } } }
`;
    await uploadModule(context, actor, 'live', module);
    const refused = await submitFor('apply', ['live']);
    expect(await domain.links.nextOperation(agent.id, 6)).toBeNull();
    expect((await getOperation(context, refused)).error).toContain(
      'a module has a trigger with `immediately`, and the agent web-1 (version 0.1.0, protocol 6) does not support it',
    );
    await submitFor('apply', ['live']);
    const sent = await domain.links.nextOperation(agent.id, 7);
    expect(sent?.operation.resources[1]).toMatchObject({ reload_on: ['path:/etc/a'], immediate_on: ['path:/etc/a'] });
  });

  test('sends a resource’s condition, and does not remove the resource if the condition is false', async () => {
    const { domain, context, agent, submitFor } = await openWith();
    const id = await submitFor('apply');
    const sent = await domain.links.nextOperation(agent.id);
    expect(sent?.operation.resources).toMatchObject([{ only_if: { exists: '/opt' } }, { identity: '/etc/b' }]);
    const results = [
      resultOf({ identity: '/etc/a', action: 'none', status: 'skipped', message: 'no /opt' }),
      resultOf({ identity: '/etc/b' }),
    ];
    await domain.links.reported(
      agent.id,
      instance,
      1,
      reportsOf(id, results, { now: domain.now(), status: 'succeeded' }),
    );
    const { applied, unapplied } = await getState(context, 'web-1');
    expect([applied.map(({ identity }) => identity), unapplied]).toEqual([['/etc/b'], []]);
    expect((await listReconcile(context, { limit: 50, offset: 0 }, createOffRanking(context))).items).toEqual([]);
  });
});
