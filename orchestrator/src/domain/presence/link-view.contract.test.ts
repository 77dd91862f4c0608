import { expect, test } from 'vitest';
import { describePostgres } from '../../../test/databases/databases.ts';
import { connect, type Key, newAdmin, newAgent } from '../../../test/domain.ts';
import { close, openPair, type ReplicaDomain } from '../../../test/replicas.ts';
import { connectionSettings, connect as connectTo } from '../../store/postgres/postgres-settings.ts';
import { setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { ReplicaClosed } from '../replicas/replicas.ts';
import { LinkView } from './link-view.ts';
import { SharedPresence } from './shared-presence.ts';

describePostgres('agents of several replicas', (fixture) => {
  const open = async () => {
    const [one, two] = await openPair(fixture, { isReplica: true });
    const { actor } = await newAdmin(one);
    const agent = await newAgent(one, actor, 'web-1');
    const view = new LinkView(one.context);
    one.connected.clear();
    const presence = new SharedPresence(one.context.presence, view);
    return { one, two, actor, agent, view, presence };
  };
  const depart = async ({ links, connected }: ReplicaDomain, { id }: Key) => {
    connected.delete(id);
    await links.closed(id, 'closed', 1);
  };

  test('counts an agent as connected while the replica that holds its link is alive', async () => {
    const { one, two, agent, view, presence } = await open();
    await view.read();
    expect(presence.isConnected(agent.id)).toBe(false);
    await connect(two, agent);
    expect((await view.read()).changes).toMatchObject([
      { node_id: agent.id, hint: { type: 'agent_linked', node_id: agent.id } },
    ]);
    expect((await view.read()).changes).toEqual([]);
    expect([presence.isConnected(agent.id), presence.count, presence.replicaOf(agent.id)?.incarnation]).toEqual([
      true,
      1,
      two.context.incarnation,
    ]);
    // The time of the last contact with the agent is not known yet.
    expect(presence.lastContactAt(agent.id)).toBe(0);
    await depart(two, agent);
    expect((await view.read()).changes).toMatchObject([{ hint: { type: 'agent_departed' } }]);
    expect([presence.isConnected(agent.id), presence.count]).toEqual([false, 0]);
    await connect(two, agent);
    await view.read();
    expect(presence.isConnected(agent.id)).toBe(true);
    await close(one.context, two.context.incarnation);
    expect((await view.read()).changes).toMatchObject([
      { node_id: agent.id, hint: { type: 'agent_departed', node_id: agent.id, heard_at: one.now() } },
    ]);
    expect([presence.isConnected(agent.id), presence.count]).toEqual([false, 0]);
    expect((await view.read()).changes).toEqual([]);
  });

  test('detects that another replica has closed this replica', async () => {
    const { one, view } = await open();
    await view.read();
    await close(one.context, one.context.incarnation);
    await expect(view.read()).rejects.toThrow(ReplicaClosed);
  });

  test('distinguishes changes to links from changes to records in a read of all links', async () => {
    const { one, two, actor, agent, view } = await open();
    const own = await newAgent(one, actor, 'web-2');
    await depart(one, own);
    await view.read();
    one.clock.advance(30_000);
    await connect(two, agent);
    await connect(one, own);
    const { changes } = await view.read();
    expect(new Map(changes.map(({ node_id, hint }) => [node_id, hint]))).toEqual(
      new Map([
        [agent.id, { type: 'agent_linked', node_id: agent.id }],
        [own.id, { type: 'agent_changed', node_id: own.id }],
      ]),
    );
    one.clock.advance(30_000);
    await depart(two, agent);
    expect((await view.read()).changes).toMatchObject([{ node_id: agent.id, hint: { type: 'agent_departed' } }]);
  });

  test('reports changes that another replica made to agents', async () => {
    const { one, two, actor, agent, view } = await open();
    await connect(one, agent);
    await view.read();
    await putOneTag(two.context, actor, 'web-1', 'role', 'web');
    const changed = [{ node_id: agent.id, link_incarnation: one.context.incarnation, hint: { type: 'agent_changed' } }];
    expect((await view.read()).changes).toMatchObject(changed);
    await setStatus(two.context, actor, agent.id, { status: 'rejected' });
    expect((await view.read()).changes).toMatchObject(changed);
  });

  test('reports a change that another replica made right after the agent connected to this replica', async () => {
    const { one, two, actor, agent, view } = await open();
    await depart(one, agent);
    await view.read();
    await connect(one, agent);
    await putOneTag(two.context, actor, 'web-1', 'role', 'web');
    expect((await view.read()).changes).toMatchObject([{ hint: { type: 'agent_changed', node_id: agent.id } }]);
  });

  test('reports a change whose transaction ended after that of a later change', async () => {
    const { one, two, actor, agent, view } = await open();
    await connect(one, agent);
    await view.read();
    const slow = await connectTo(connectionSettings({ url: one.address }));
    await slow.query('begin');
    const sql = 'update agents set link_change = pg_current_xact_id()::text::bigint where node_id = $1';
    await slow.query(sql, [agent.id]);
    const other = await newAgent(two, actor, 'web-2');
    expect((await view.read()).changes.map(({ node_id }) => node_id)).toEqual([other.id]);
    await slow.query('commit');
    await slow.end();
    expect((await view.read()).changes.map(({ node_id }) => node_id)).toEqual([agent.id]);
  });

  test('finds its own claims without a link, and repairs its view', async () => {
    const { one, agent, view } = await open();
    expect((await view.read()).own).toEqual([agent.id]);
    await connect(one, agent);
    expect((await view.read()).own).toBeNull();
    await depart(one, agent);
    one.clock.advance(30_000);
    expect((await view.read()).own).toEqual([]);
  });
});
