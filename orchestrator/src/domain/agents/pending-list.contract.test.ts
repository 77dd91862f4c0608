import { expect, test, vi } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { connect, type Domain, type Key, newAdmin, newKey, openDomain } from '../../../test/domain.ts';
import { listAudit } from '../audit/audit.ts';
import { listAgents, setStatus } from './agents.ts';
import { createToken } from './enrollment.ts';
import { deletedAfterSecs } from './pending-list.ts';

const day = 86_400_000;

describeAnyDatabase('pending agents', (fixture) => {
  /** Connects a new agent, and disconnects it unless `stays` is set. */
  const come = async (domain: Domain, ip: string, { stays = false } = {}): Promise<{ key: Key; admitted: boolean }> => {
    const key = await newKey();
    const { admitted } = await connect(domain, key, {}, ip);
    if (!stays) domain.connected.delete(key.id);
    return { key, admitted };
  };
  const waiting = async ({ context }: Domain) =>
    (await listAgents(context, { status: 'pending' })).map(({ node_id }) => node_id);
  const events = async ({ context }: Domain, event_type: string) =>
    (await listAudit(context, { event_type, limit: 200 })).events;

  test('displaces a disconnected agent for an agent from another network', async () => {
    const domain = await openDomain(fixture, { pendingCapacity: 5 });
    const flood: Key[] = [];
    for (let at = 0; at < 5; at++) {
      flood.push((await come(domain, `198.51.100.${at}`)).key);
      domain.clock.advance(1_000);
    }
    expect((await come(domain, '198.51.100.99')).admitted).toBe(false);
    const machine = await come(domain, '192.0.2.7', { stays: true });
    expect(machine.admitted).toBe(true);
    const left = await waiting(domain);
    expect(left).toHaveLength(5);
    expect(left).toContain(machine.key.id);
    expect(left).not.toContain(flood[0]?.id);
    await vi.waitFor(() => expect(domain.hints).toContainEqual({ type: 'agent_removed', node_id: flood[0]?.id }));
    // The displaced agent reconnects and is treated as new.
    expect((await connect(domain, flood[0] as Key, {}, '203.0.113.1')).admitted).toBe(true);
  });

  test('displaces a connected agent for an agent from a smaller network', async () => {
    const domain = await openDomain(fixture, { pendingCapacity: 4 });
    for (let at = 0; at < 4; at++) await come(domain, `2001:db8:0:1::${at}`, { stays: true });
    expect((await come(domain, '2001:db8:0:2::1', { stays: true })).admitted).toBe(true);
    expect((await come(domain, '2001:db8:0:2::2', { stays: true })).admitted).toBe(true);
    expect((await come(domain, '2001:db8:0:2::3', { stays: true })).admitted).toBe(false);
  });

  test('displaces agents from adjacent small networks for an agent from a distant network', async () => {
    const domain = await openDomain(fixture, { pendingCapacity: 4 });
    for (let at = 0; at < 4; at++) await come(domain, `2001:db8:0:${at}::1`, { stays: true });
    expect((await come(domain, '2001:db8:0:9::1', { stays: true })).admitted).toBe(false);
    expect((await come(domain, '2001:db8:1::1', { stays: true })).admitted).toBe(true);
    expect((await come(domain, '192.0.2.7', { stays: true })).admitted).toBe(true);
    expect(await waiting(domain)).toHaveLength(4);
  });

  test('never displaces agents that enrolled with a token', async () => {
    const domain = await openDomain(fixture, { pendingCapacity: 1 });
    const { actor } = await newAdmin(domain);
    const endpoints = { agents: 'muster.example:4747', publicKey: '00'.repeat(32) };
    const { token } = await createToken(domain.context, actor, { approve: false }, endpoints);
    const key = await newKey();
    expect((await connect(domain, key, { token })).admitted).toBe(true);
    domain.connected.delete(key.id);
    expect((await come(domain, '203.0.113.1')).admitted).toBe(false);
  });

  test('records up to ten new agents a minute in separate events, and further new agents in a shared event', async () => {
    const domain = await openDomain(fixture);
    for (let at = 0; at < 40; at++) await come(domain, `198.51.100.${at}`);
    expect(await events(domain, 'agent.pending')).toHaveLength(10);
    expect(await events(domain, 'agent.connected')).toHaveLength(10);
    await domain.pending.report();
    expect(await events(domain, 'agent.pending')).toHaveLength(10);
    domain.clock.advance(60_000);
    await domain.pending.report();
    await domain.pending.report();
    const announced = await events(domain, 'agent.pending');
    expect(announced).toHaveLength(11);
    expect(announced[0]).toMatchObject({
      summary: '30 more agents wait for approval; the newest is web-1 from 198.51.100.39',
      metadata: { count: 30 },
    });
    await come(domain, '198.51.100.100');
    expect(await events(domain, 'agent.pending')).toHaveLength(12);
  });

  test('deletes disconnected pending agents after an hour, but keeps those that were approved', async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const departed = await come(domain, '192.0.2.1');
    const stays = await come(domain, '192.0.2.2', { stays: true });
    const approved = await come(domain, '192.0.2.3');
    await setStatus(domain.context, actor, approved.key.id, { status: 'approved', name: 'web-3' });
    domain.clock.advance((deletedAfterSecs - 10) * 1_000);
    await domain.pending.forget(domain.context, day);
    expect(await waiting(domain)).toContain(departed.key.id);
    domain.clock.advance(20_000);
    await domain.pending.forget(domain.context, 0);
    expect(await waiting(domain)).toContain(departed.key.id);
    await domain.pending.forget(domain.context, day);
    expect(await waiting(domain)).toEqual([stays.key.id]);
  });
});
