import { afterEach, expect, test, vi } from 'vitest';
import { happen } from '../../test/audit.ts';
import { describeDatabases } from '../../test/databases/databases.ts';
import { connect, newAdmin, newAgent } from '../../test/domain.ts';
import { getOperation } from '../../test/reading.ts';
import { close, openPair, type ReplicaDomain, suspendedBefore } from '../../test/replicas.ts';
import { getAgent } from '../domain/agents/agents.ts';
import { listAudit } from '../domain/audit/audit.ts';
import { createSequencer, readChainEnds } from '../domain/audit/event-sequencer.ts';
import { repairRestored, restoredKey } from '../domain/fleet/restored.ts';
import { uploadModule } from '../domain/modules/modules.ts';
import { submitOperation } from '../domain/operations/operations.ts';
import { rotateSecretsKey } from '../domain/secrets/secret-rotation.ts';
import { createSecret } from '../domain/secrets/secrets.ts';
import { LeaseLost } from '../domain/shared/leases.ts';
import { putSetting } from '../store/queries/settings.ts';
import { statement } from '../store/transaction.ts';
import { startAuditKeeping } from './audit-keeping.ts';
import { startDriftSweep } from './drift-sweep.ts';
import { startOutbox } from './outbox.ts';
import { startUpkeep, type Upkeep, type UpkeepOptions } from './upkeep.ts';

const hour = 3_600_000;
const lostAfterSecs = 120;

describeDatabases('maintenance of the fleet by two processes', (fixture) => {
  const started: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const one of started.splice(0)) await one.stop();
  });

  const maintain = (
    { context, clock, leases, placement }: ReplicaDomain,
    options: UpkeepOptions = {},
    from = context,
  ): Upkeep => {
    // Tests run the rounds, so that advancing the clock runs none.
    const still = { now: () => clock.now(), monotonic: () => clock.monotonic(), after: () => () => {} };
    const upkeep = startUpkeep(from, still, { lease: leases.lease('upkeep'), placement, lostAfterSecs, ...options });
    started.push(upkeep);
    return upkeep;
  };
  const open = async () => {
    const [one, two] = await openPair(fixture);
    const { actor } = await newAdmin(one);
    const advance = (ms: number) => {
      one.clock.advance(ms);
      two.clock.advance(ms);
    };
    const events = async (event_type: string) =>
      (await listAudit(one.context, { event_type })).events.map(({ target }) => target.name);
    return { one, two, actor, advance, events };
  };

  test('expires operations in the process that holds the lease, and in the other process after the first process stops', async () => {
    const { one, two, actor, advance } = await open();
    await uploadModule(one.context, actor, 'm', 'name: m\nsupports: [{ platform: linux }]\nresources: []\n');
    const agent = await newAgent(one, actor, 'web-1');
    const submit = () =>
      submitOperation(one.context, actor, agent.id, { kind: 'apply', modules: ['m'], queue: true, ttl: 60 });
    const first = maintain(one);
    const second = maintain(two);
    await first.round();
    const id = await submit();
    advance(61_000);
    await second.round();
    expect((await getOperation(one.context, id)).status).toBe('queued');
    await first.stop();
    await second.round();
    expect((await getOperation(one.context, id)).status).toBe('expired');
  });

  test('announces an expiry once, even if the previous holder resumes just before its commit', async () => {
    const { one, two, actor, events } = await open();
    await createSecret(one.context, actor, { name: 'soon', value: 'v', expires_at: one.context.now() + hour });
    const suspended = suspendedBefore(one.context, 'secrets/expiring');
    const first = maintain(one, {}, suspended.context);
    const resumed = first.round();
    await suspended.reached;
    await close(two.context, one.context.incarnation);
    await maintain(two).round();
    expect(await events('secret.expiring')).toEqual(['soon']);
    suspended.resume();
    await expect(resumed).rejects.toThrow('the lease upkeep has passed to another process');
    expect(await events('secret.expiring')).toEqual(['soon']);
  });

  test('refreshes last-seen times in each process, and marks agents as lost in one', async () => {
    const { one, two, actor, advance, events } = await open();
    const [here, gone] = [await newAgent(one, actor, 'here'), await newAgent(one, actor, 'gone')];
    const first = maintain(one);
    const second = maintain(two);
    await first.round();
    // The agent moves to the process that does not maintain the fleet.
    one.connected.delete(here.id);
    await connect(two, here);
    one.connected.delete(gone.id);
    const connectedAt = two.now();
    advance(900_000);
    await second.round();
    expect(await events('agent.lost')).toEqual([]);
    two.connected.delete(here.id);
    expect((await getAgent(two.context, here.id)).last_seen_at).toBe(connectedAt + 900);
    await first.round();
    expect(await events('agent.lost')).toEqual(['gone']);
  });

  test('marks no agent as lost during the grace period after a takeover or after the end of another process', async () => {
    const { one, two, actor, advance, events } = await open();
    const agent = await newAgent(one, actor, 'web-1');
    await maintain(one).round();
    const second = maintain(two);
    advance(hour);
    one.connected.clear();
    await close(two.context, one.context.incarnation);
    await second.round();
    advance((lostAfterSecs - 1) * 1000);
    two.placement.peerLeftAt = two.clock.monotonic();
    await second.round();
    advance(2_000);
    await second.round();
    expect(await events('agent.lost')).toEqual([]);
    advance((lostAfterSecs - 2) * 1000);
    await second.round();
    expect(await events('agent.lost')).toEqual(['web-1']);
    expect(agent.id).not.toBe('');
  });

  test('moves each lease to the preferred process', async () => {
    const { one, two } = await open();
    const work = (domain: ReplicaDomain) => {
      const { context, clock, leases } = domain;
      const keeping = startAuditKeeping(context, clock, {
        lease: leases.lease('audit'),
        sequencer: createSequencer(context, { consumers: [] }),
        retentionDays: 0,
      });
      const outbox = startOutbox(context, clock, {
        lease: leases.lease('outbox'),
        deliver: async () => ({ status: 200, retryAfterMs: null }),
        random: () => 0,
        giveUpAfter: 60,
        retentionDays: 1,
      });
      const sweep = startDriftSweep(context, clock, {
        lease: leases.lease('drift-sweep'),
        random: () => 0,
        ...{ interval: 3600, maxConcurrent: 8, skipRecentlyApplied: 0 },
      });
      const upkeep = maintain(domain);
      started.push(keeping, outbox, sweep);
      return async () => {
        await keeping.round();
        await outbox.turn();
        await sweep.turn();
        await upkeep.round();
      };
    };
    const [turnOfOne, turnOfTwo] = [work(one), work(two)];
    const names = ['audit', 'outbox', 'drift-sweep', 'upkeep'];
    const heldBy = async ({ leases }: ReplicaDomain) => {
      const held: string[] = [];
      for (const name of names) if ((await leases.hold(name)) !== null) held.push(name);
      return held;
    };
    await turnOfOne();
    expect(await heldBy(one)).toEqual(names);
    expect(await heldBy(two)).toEqual([]);
    one.placement.isPreferred = () => false;
    // The outbox does its housekeeping once a minute, and the drift sweep once an hour.
    one.clock.jump(hour);
    await vi.waitFor(async () => {
      one.clock.advance(hour);
      await turnOfOne();
      await turnOfTwo();
      expect(await heldBy(two)).toEqual(names);
    });
  });

  test('chains each event once, even if the previous lease holder resumes just before its commit', async () => {
    const { one, two } = await open();
    const suspended = suspendedBefore(one.context, 'audit/place');
    const keep = (domain: ReplicaDomain, context = domain.context) => {
      const keeping = startAuditKeeping(context, domain.clock, {
        lease: domain.leases.lease('audit'),
        sequencer: createSequencer(context, { consumers: [] }),
        retentionDays: 0,
      });
      started.push(keeping);
      return keeping;
    };
    const first = keep(one, suspended.context);
    await happen(one, 3);
    const resumed = first.round();
    await suspended.reached;
    await close(two.context, one.context.incarnation);
    const second = keep(two);
    await second.round();
    const { head } = await readChainEnds(two.context);
    suspended.resume();
    await expect(resumed).rejects.toThrow('the lease audit has passed to another process');
    expect((await readChainEnds(two.context)).head).toEqual(head);
  });

  test('rotates the secrets key in only one process, which writes nothing after a takeover', async () => {
    const { one, two, actor } = await open();
    await createSecret(one.context, actor, { name: 'x', value: 'v' });
    const suspended = suspendedBefore(one.context, 'secrets/key rotated');
    const rotating = rotateSecretsKey(suspended.context, actor);
    await suspended.reached;
    await expect(rotateSecretsKey(two.context, actor)).rejects.toThrow('another orchestrator process is rotating');
    await close(two.context, one.context.incarnation);
    await rotateSecretsKey(two.context, actor);
    suspended.resume();
    await expect(rotating).rejects.toThrow(LeaseLost);
    expect((await listAudit(two.context, { event_type: 'secret.key_rotated' })).events).toHaveLength(1);
    await rotateSecretsKey(one.context, actor);
  });

  test('repairs a restored database in one process while the other process waits', async () => {
    const { one, two } = await open();
    const value = JSON.stringify({ id: 'backup', created_at: '2026-01-01T00:00:00Z' });
    await one.db.write({ name: 'test/restored', statements: [statement(putSetting, { key: restoredKey, value })] });
    const lease = one.leases.lease('upkeep');
    await lease.hold();
    let pauses = 0;
    const waited = await repairRestored(two.context, two.leases.lease('upkeep'), async () => {
      pauses++;
      expect(await repairRestored(one.context, lease, async () => {})).toMatchObject({ id: 'backup' });
    });
    expect([waited, pauses]).toEqual([null, 1]);
    expect((await listAudit(two.context, { event_type: 'system.restored' })).events).toHaveLength(1);
  });

  test('waits for the next lease holder if it loses the lease while repairing a restored database', async () => {
    const { one, two } = await open();
    const value = JSON.stringify({ id: 'backup', created_at: '2026-01-01T00:00:00Z' });
    await one.db.write({ name: 'test/restored', statements: [statement(putSetting, { key: restoredKey, value })] });
    const suspended = suspendedBefore(one.context, 'restored/settle');
    let pauses = 0;
    const repairing = repairRestored(suspended.context, one.leases.lease('upkeep'), async () => {
      pauses++;
      expect(await repairRestored(two.context, two.leases.lease('upkeep'), neverPauses)).toMatchObject({
        id: 'backup',
      });
    });
    await suspended.reached;
    await close(two.context, one.context.incarnation);
    expect(await two.leases.hold('upkeep')).not.toBeNull();
    suspended.resume();
    expect([await repairing, pauses]).toEqual([null, 1]);
    expect((await listAudit(two.context, { event_type: 'system.restored' })).events).toHaveLength(1);
  });

  test('stops waiting for the repair of a restored database when the process must stop', async () => {
    const { one, two } = await open();
    const value = JSON.stringify({ id: 'backup', created_at: '2026-01-01T00:00:00Z' });
    await one.db.write({ name: 'test/restored', statements: [statement(putSetting, { key: restoredKey, value })] });
    await one.leases.hold('upkeep');
    const stopping = async () => Promise.reject(new Error('told to stop'));
    await expect(repairRestored(two.context, two.leases.lease('upkeep'), stopping)).rejects.toThrow('told to stop');
  });
});

const neverPauses = () => Promise.reject(new Error('must not wait'));
