import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { describePostgres } from '../../../test/databases/databases.ts';
import { connect, helloOf, newAdmin, newAgent, newKey } from '../../../test/domain.ts';
import { NatsFleet } from '../../../test/nats/nats-fleet.ts';
import { natsMissing } from '../../../test/nats/nats-server.ts';
import { close, openPair } from '../../../test/replicas.ts';
import { insertFormerAgentKey } from '../../store/queries/agents/agent-keys.ts';
import { askProbe, linkOf } from '../../store/queries/agents/agent-links.ts';
import { statement } from '../../store/transaction.ts';
import { listAudit } from '../audit/audit.ts';
import { isUnanswered, judgeRival, probeLink, recordAnswer } from './link-rivals.ts';

describePostgres('a link of an agent at a second replica', (fixture) => {
  const open = async () => {
    const [one, two] = await openPair(fixture, { isReplica: true });
    const { actor } = await newAdmin(one);
    const agent = await newAgent(one, actor, 'web-1');
    const link = async () => (await one.context.db.get(linkOf, { node_id: agent.id }))!;
    /** Waits until the second replica requests a probe of the first replica's link. */
    const question = () =>
      vi.waitFor(async () => {
        const { link_probe } = await link();
        if (!isUnanswered(link_probe)) throw new Error('not asked yet');
        return link_probe;
      });
    const rival = () => connect(two, agent, { instance_id: '02'.repeat(16) });
    return { one, two, agent, link, question, rival };
  };

  test('moves a link to another replica immediately for the same agent process', async () => {
    const { two, agent, link } = await open();
    expect(await connect(two, agent)).toMatchObject({ admitted: true });
    expect((await link()).link_incarnation).toBe(two.context.incarnation);
  });

  test('treats a second process as a clone if the agent answers on the first replica', async () => {
    const { one, agent, question, rival, link } = await open();
    const admission = rival();
    await recordAnswer(one.context, agent.id, await question());
    expect(await admission).toMatchObject({ admitted: false, refusal: { code: 'cloned' } });
    expect((await link()).link_incarnation).toBe(one.context.incarnation);
    expect((await listAudit(one.context, { event_type: 'agent.cloned' })).events).toHaveLength(1);
    // An earlier answer does not apply to the next link.
    const again = rival();
    await question();
    await one.links.closed(agent.id, 'no answer', 1);
    expect(await again).toMatchObject({ admitted: true });
  });

  test('probes a link through NATS without writing a probe request to the row', async ({ skip, onTestFinished }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    const { one, two, agent, link } = await open();
    const fleet = await NatsFleet.start();
    onTestFinished(() => fleet.end());
    const [first, second] = [one, two].map(({ context }) => fleet.join({ own: context.incarnation }));
    await fleet.isComplete();
    let isAlive = true;
    const asked: string[] = [];
    first!.answer(probeLink, async ({ node_id }) => {
      asked.push(node_id);
      if (!isAlive) await one.links.closed(agent.id, 'no answer', 1);
      return { answered: isAlive };
    });
    const hello = helloOf(agent, { instance_id: '02'.repeat(16) });
    const caller = { node_id: agent.id, remote_ip: '192.0.2.1', now: 1, valid_until: null, succession: null };
    const judge = () => judgeRival({ ...two.context, bus: second! }, hello, caller);
    const writes = vi.spyOn(two.context.db, 'write');
    expect(await judge()).toMatchObject({ code: 'cloned' });
    isAlive = false;
    expect(await judge()).toBeNull();
    expect(asked).toEqual([agent.id, agent.id]);
    expect((await link()).link_probe).toBeNull();
    expect(writes.mock.calls.map(([{ name }]) => name)).not.toContain('agents/ask link');
  });

  test('writes a probe request to the row if the other replica does not answer through NATS', async ({
    skip,
    onTestFinished,
  }) => {
    const reason = natsMissing();
    if (reason !== null) skip(reason);
    const { one, two, agent, question } = await open();
    const fleet = await NatsFleet.start();
    onTestFinished(() => fleet.end());
    // The probe through NATS does not time out.
    const after: typeof systemClock.after = (ms, action) => systemClock.after(ms >= 6_000 ? 1e9 : ms, action);
    const clock = { ...systemClock, after };
    const [first, second] = [one, two].map(({ context }) => fleet.join({ own: context.incarnation, clock }));
    await fleet.isComplete();
    const asked = Promise.withResolvers<void>();
    first!.answer(probeLink, () => {
      asked.resolve();
      return new Promise(() => {});
    });
    const hello = helloOf(agent, { instance_id: '02'.repeat(16) });
    const caller = { node_id: agent.id, remote_ip: '192.0.2.1', now: 1, valid_until: null, succession: null };
    const judged = judgeRival({ ...two.context, bus: second! }, hello, caller);
    await asked.promise;
    two.clock.advance(2_000);
    await recordAnswer(one.context, agent.id, await question());
    expect(await judged).toMatchObject({ code: 'cloned' });
  });

  test('admits a second agent process after the first replica has closed its link or has stopped', async () => {
    const { one, two, agent, question, rival } = await open();
    const admission = rival();
    await question();
    await one.links.closed(agent.id, 'no answer', 1);
    expect(await admission).toMatchObject({ admitted: true });
    const back = connect(one, agent);
    await question();
    await close(one.context, two.context.incarnation);
    expect(await back).toMatchObject({ admitted: true });
  });

  test('replaces another replica’s probe request that was not answered for six seconds', async () => {
    const { one, two, agent, question, rival } = await open();
    const lost = { node_id: agent.id, incarnation: one.context.incarnation, probe: 'lost' };
    await one.context.db.write({ name: 'test/ask', statements: [statement(askProbe, lost)] });
    const reads = vi.spyOn(two.context.db, 'get');
    const admission = rival();
    const readsOfLink = () => reads.mock.calls.filter(([query]) => (query as unknown) === linkOf);
    // The process records the time of the probe request when it handles the second or third read.
    await vi.waitFor(() => expect(readsOfLink().length).toBeGreaterThan(3));
    expect(await question()).toBe('lost');
    two.clock.advance(6_000);
    await vi.waitFor(async () => expect(await question()).not.toBe('lost'));
    await recordAnswer(one.context, agent.id, await question());
    expect(await admission).toMatchObject({ admitted: false, refusal: { code: 'cloned' } });
  });

  test('replaces a link that uses a previous key immediately when a process connects with the current key', async () => {
    const { one, two, agent, link, rival } = await open();
    const { db, incarnation } = one.context;
    const previous = await newKey();
    const key = { node_id: agent.id, valid_until: one.now() + 60 };
    const insert = statement(insertFormerAgentKey, { ...key, public_key: previous.hex });
    await db.write({ name: 'test/key', statements: [insert] });
    await one.links.admit(helloOf(previous), { ...key, succession: null, remote_ip: '192.0.2.1', now: one.now() });
    expect(await db.get(linkOf, { node_id: agent.id })).toMatchObject({ link_incarnation: incarnation });
    expect(await rival()).toMatchObject({ admitted: true });
    expect((await link()).link_incarnation).toBe(two.context.incarnation);
  });

  test('asks the agent to retry if the first replica does not answer', async () => {
    const { two, question, rival } = await open();
    const admission = rival();
    await question();
    two.clock.advance(10_000);
    expect(await admission).toMatchObject({ admitted: false, refusal: { code: 'unavailable', retry_after_secs: 5 } });
  });

  test('keeps the claim of a new link if the previous link to the same replica ends late', async () => {
    const { one, agent, link } = await open();
    const late = one.links.closed(agent.id, 'closed', 1);
    await Promise.all([late, connect(one, agent)]);
    expect((await link()).link_incarnation).toBe(one.context.incarnation);
  });
});
