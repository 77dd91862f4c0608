import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, type Domain, type Key, newAdmin, newAgent, newKey, openDomain } from '../../../test/domain.ts';
import { startUpkeep } from '../../schedule/upkeep.ts';
import { toJson } from '../../store/json-text.ts';
import { setAttributes } from '../../store/queries/agents/agents.ts';
import { statement } from '../../store/transaction.ts';
import { listAudit } from '../audit/audit.ts';
import { getAgent, setStatus } from './agents.ts';
import { createLostWatch } from './lost-agents.ts';

const lostAfterSecs = 120;

async function open(fixture: Parameters<typeof openDomain>[0]) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const startedAt = domain.clock.monotonic();
  const watch = createLostWatch(domain.context, {
    lostAfterSecs,
    upFor: () => domain.clock.monotonic() - startedAt,
  });
  return { domain, actor, watch };
}

async function leave(domain: Domain, nodeId: string): Promise<void> {
  domain.connected.delete(nodeId);
  await domain.links.closed(nodeId, 'gone', domain.now());
}

/** Returns the recorded transitions of all agents, oldest first, as `type name`. */
async function transitions({ context }: Domain): Promise<string[]> {
  const { events } = await listAudit(context, { category: 'agent', limit: 500 });
  return events
    .filter(({ event_type }) => /lost|returned|connected|cloned|refused/.test(event_type))
    .map(({ event_type, target }) => `${event_type} ${target.name}`)
    .reverse();
}

describeAnyDatabase('agents that disconnect and reconnect', (fixture) => {
  test('records one event when an agent is lost after the grace period, and one when it returns', async () => {
    const { domain, actor, watch } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    domain.clock.advance(lostAfterSecs * 1000);
    await leave(domain, key.id);
    const leftAt = domain.now();
    domain.clock.advance((lostAfterSecs - 1) * 1000);
    await watch.round(domain.context);
    expect(await transitions(domain)).toEqual(['agent.connected web-1']);
    domain.clock.advance(1000);
    await watch.round(domain.context);
    await watch.round(domain.context);
    domain.clock.advance(86_400_000);
    await watch.round(domain.context);
    expect(await transitions(domain)).toEqual(['agent.connected web-1', 'agent.lost web-1']);
    const [lost] = (await listAudit(domain.context, { event_type: 'agent.lost' })).events;
    expect(lost).toMatchObject({ severity: 'warning', metadata: { last_seen_at: leftAt }, target: { id: key.id } });
    expect((await getAgent(domain.context, key.id)).last_seen_at).toBe(leftAt);
    await connect(domain, key);
    await leave(domain, key.id);
    await connect(domain, key);
    await watch.round(domain.context);
    expect((await transitions(domain)).slice(2)).toEqual(['agent.returned web-1']);
    await leave(domain, key.id);
    domain.clock.advance(lostAfterSecs * 1000);
    await watch.round(domain.context);
    expect((await transitions(domain)).slice(3)).toEqual(['agent.lost web-1']);
  });

  test('records no event for a short disconnect, and one event for a new address', async () => {
    const { domain, actor, watch } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    for (let blip = 0; blip < 3; blip++) {
      await leave(domain, key.id);
      domain.clock.advance((lostAfterSecs - 1) * 1000);
      await watch.round(domain.context);
      await connect(domain, key);
    }
    expect(await transitions(domain)).toEqual(['agent.connected web-1']);
    await connect(domain, key, { agent_version: '0.2.0' });
    const [event] = (await listAudit(domain.context, { event_type: 'agent.connected' })).events;
    expect(event?.metadata).toMatchObject({ agent_version: '0.2.0', former_agent_version: '0.1.0' });
    await connect(domain, key, { agent_version: '0.2.0' });
    expect(await transitions(domain)).toHaveLength(2);
  });

  test('waits for the grace period after startup before it marks agents as lost', async () => {
    const { domain, actor } = await open(fixture);
    const [stays, returns] = [await newAgent(domain, actor, 'stays'), await newAgent(domain, actor, 'returns')];
    // The orchestrator stops while both agents are connected, so it records no last-seen times.
    domain.connected.clear();
    domain.clock.advance(86_400_000);
    const upkeep = startUpkeep(domain.context, domain.clock, { lostAfterSecs });
    await upkeep.round();
    domain.clock.advance((lostAfterSecs - 1) * 1000);
    await upkeep.round();
    await connect(domain, returns);
    domain.clock.advance(1000);
    await upkeep.round();
    await upkeep.stop();
    expect((await transitions(domain)).slice(2)).toEqual(['agent.lost stays']);
    expect(stays.id).not.toBe(returns.id);
  });

  test('does not mark pending or rejected agents as lost', async () => {
    const { domain, actor, watch } = await open(fixture);
    const pending = await newKey();
    await connect(domain, pending, { hostname: 'pending' });
    const rejected = await newAgent(domain, actor, 'rejected');
    await setStatus(domain.context, actor, rejected.id, { status: 'rejected' });
    await leave(domain, pending.id);
    await leave(domain, rejected.id);
    for (let attempt = 0; attempt < 5; attempt++) {
      await connect(domain, pending, { agent_version: `0.${attempt}.0` });
      await leave(domain, pending.id);
    }
    domain.clock.advance(lostAfterSecs * 1000);
    await watch.round(domain.context);
    expect(await transitions(domain)).toEqual(['agent.connected pending', 'agent.connected rejected']);
    await setStatus(domain.context, actor, pending.id, { status: 'approved', name: 'late' });
    await watch.round(domain.context);
    expect((await transitions(domain)).slice(2)).toEqual(['agent.lost late']);
  });

  test('refreshes the last-seen times of connected agents periodically', async () => {
    const { domain, actor, watch } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    const recorded = async () => {
      domain.connected.delete(key.id);
      const { last_seen_at } = await getAgent(domain.context, key.id);
      domain.connected.add(key.id);
      return last_seen_at;
    };
    const connectedAt = domain.now();
    for (let passed = 5; passed < 900; passed += 5) {
      domain.clock.advance(5000);
      await watch.round(domain.context);
      expect((await getAgent(domain.context, key.id)).last_seen_at).toBe(domain.now());
    }
    // Does not write the records of connected agents, because the gateway knows their last-seen times.
    expect(await recorded()).toBe(connectedAt);
    for (let passed = 0; passed < 900; passed += 5) {
      domain.clock.advance(5000);
      await watch.round(domain.context);
    }
    expect(await recorded()).toBeGreaterThanOrEqual(domain.now() - 900);
    expect(await transitions(domain)).toEqual(['agent.connected web-1']);
  });

  test('finds a lost agent among many connected agents, and an agent that disconnects after its check', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const agents: { name: string; key: Key }[] = [];
    for (let n = 0; n < 6; n++) agents.push({ name: `web-${n}`, key: await newAgent(domain, actor, `web-${n}`) });
    // All agents were last seen in the same second, so the scan orders them by id.
    agents.sort((a, b) => (a.key.id < b.key.id ? -1 : 1));
    const [departs, last] = [agents[2]!, agents[5]!];
    await leave(domain, last.key.id);
    // This scan receives no hints.
    const watch = createLostWatch(domain.context, { lostAfterSecs, upFor: () => 1e9, atOnce: 2 });
    domain.clock.advance(lostAfterSecs * 1000);
    for (let round = 0; round < 4; round++) await watch.round(domain.context);
    expect((await transitions(domain)).slice(6)).toEqual([`agent.lost ${last.name}`]);
    // Backdates the agent's last contact to before the grace period.
    const lastContactAt = domain.now() - lostAfterSecs;
    domain.connected.delete(departs.key.id);
    await domain.links.closed(departs.key.id, 'gone', lastContactAt);
    await vi.waitFor(() =>
      expect(domain.hints).toContainEqual({ type: 'agent_departed', node_id: departs.key.id, heard_at: lastContactAt }),
    );
    await watch.round(domain.context);
    expect((await transitions(domain)).slice(7)).toEqual([`agent.lost ${departs.name}`]);
    watch.stop();
  });

  test('keeps a newer last-seen time when a disconnect is recorded late', async () => {
    const { domain, actor } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    const lastContactAt = domain.now();
    domain.clock.advance(60_000);
    await connect(domain, key);
    await domain.links.closed(key.id, 'gone', lastContactAt);
    domain.connected.delete(key.id);
    expect((await getAgent(domain.context, key.id)).last_seen_at).toBe(lastContactAt + 60);
  });

  test('marks agents as lost, except an agent that reconnects concurrently', async () => {
    const { domain, actor, watch } = await open(fixture);
    const keys: Key[] = [];
    for (const name of ['a', 'b', 'c']) keys.push(await newAgent(domain, actor, name));
    domain.connected.clear();
    domain.clock.advance(lostAfterSecs * 1000);
    const { db } = domain.context;
    const write = db.write.bind(db);
    // Changes the second agent's record between the read and the write.
    db.write = async (unit) => {
      db.write = write;
      const moved = {
        node_id: keys[1]!.id,
        attributes: toJson({}),
        now: domain.now(),
        incarnation: domain.context.incarnation,
      };
      await write({ name: 'test/move', statements: [statement(setAttributes, moved)] });
      return write(unit);
    };
    await watch.round(domain.context);
    expect((await transitions(domain)).slice(3).sort()).toEqual(['agent.lost a', 'agent.lost c']);
  });

  test('records thousands of disconnects in a few transactions', async () => {
    const { domain, actor } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    const { db } = domain.context;
    const write = db.write.bind(db);
    let units = 0;
    db.write = (unit) => {
      units++;
      return write(unit);
    };
    domain.clock.advance(5_000);
    await Promise.all([
      domain.links.closed(key.id, 'gone', domain.now()),
      ...Array.from({ length: 999 }, (_, index) => domain.links.closed(`${index}`, 'gone', domain.now())),
    ]);
    db.write = write;
    expect(units).toBeLessThanOrEqual(3);
    domain.connected.clear();
    expect((await getAgent(domain.context, key.id)).last_seen_at).toBe(domain.now());
  });

  test('records a cloned key at most once an hour', async () => {
    const { domain, actor } = await open(fixture);
    const key = await newAgent(domain, actor, 'web-1');
    for (let minute = 0; minute < 60; minute++) {
      await domain.links.cloneSeen(key.id, '192.0.2.66');
      domain.clock.advance(60_000);
    }
    const cloned = await listAudit(domain.context, { event_type: 'agent.cloned' });
    expect(cloned.events).toMatchObject([
      { severity: 'critical', target: { name: 'web-1' }, metadata: { ip: '192.0.2.66', connected_from: '192.0.2.7' } },
    ]);
    await Promise.all([1, 2, 3].map(() => domain.links.cloneSeen(key.id, '192.0.2.66')));
    expect((await listAudit(domain.context, { event_type: 'agent.cloned' })).events).toHaveLength(2);
  });

  test('records a refusal at most once an hour for each reason', async () => {
    const { domain } = await open(fixture);
    const from = { node_id: null, remote_ip: '192.0.2.9' };
    const refuse = (code: 'signature_invalid' | 'hello_timeout') =>
      domain.links.refused({ code, message: 'no', retry_after_secs: null }, from);
    for (let attempt = 0; attempt < 5; attempt++) await refuse('signature_invalid');
    await refuse('hello_timeout');
    expect(await transitions(domain)).toHaveLength(2);
    domain.clock.advance(3_600_000);
    await refuse('signature_invalid');
    expect(await transitions(domain)).toHaveLength(3);
  });

  test('still reports trust on first use after the agent has pinned the key', async () => {
    const { domain } = await open(fixture);
    const key = await newKey();
    await connect(domain, key, { pin_source: 'first_use' });
    await connect(domain, key, { pin_source: 'pinned' });
    expect((await getAgent(domain.context, key.id)).pin_source).toBe('first_use');
    await connect(domain, key, { pin_source: 'flag' });
    expect((await getAgent(domain.context, key.id)).pin_source).toBe('flag');
  });
});
