import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { sampleAt, samplesFixture } from '../../../test/samples.ts';
import { removeAgent, setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { createMetrics } from './metrics.ts';

const retention = 7200;

describeAnyDatabase('metrics', (fixture) => {
  const stores = samplesFixture(fixture);
  async function open() {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    const store = await stores.open({ retentionSecs: retention });
    return { domain, actor, store, metrics: createMetrics(domain.context, store, retention) };
  }

  test('lists all samples, averages, or an agent’s newest sample, by id or name', async () => {
    const { domain, actor, metrics } = await open();
    const agent = await newAgent(domain, actor, 'web-1');
    const now = domain.now();
    await metrics.record(agent.id, [sampleAt(now - 120, { load1: 1 }), sampleAt(now - 60, { load1: 3 })]);
    const samples = [sampleAt(now - 120, { load1: 1 }), sampleAt(now - 60, { load1: 3 })];
    for (const name of [agent.id, 'web-1'])
      expect(await metrics.list(name, {})).toEqual({ node_id: agent.id, samples });
    expect((await metrics.list('web-1', { limit: 1 })).samples).toEqual([samples[1]]);
    expect((await metrics.list('web-1', { since: now - 60 })).samples).toEqual([samples[1]]);
    const [average] = (await metrics.list('web-1', { step: 86_400 * 365 })).samples;
    expect(average?.load1).toBe(2);
    expect(await metrics.latest('web-1')).toEqual(samples[1]);
    await expect(metrics.list('web-2', {})).rejects.toMatchObject({ code: 'agent_not_found' });
    await expect(metrics.latest('web-2')).rejects.toMatchObject({ code: 'agent_not_found' });
  });

  test('drops samples that are too old or in the future, and prunes expired ones', async () => {
    const { domain, actor, metrics, store } = await open();
    const agent = await newAgent(domain, actor, 'web-1');
    const now = domain.now();
    await metrics.record(agent.id, [
      sampleAt(now - retention - 1),
      sampleAt(now - retention),
      sampleAt(now + 3600),
      sampleAt(now + 3601),
      sampleAt(-1),
    ]);
    const seen = async () => (await metrics.list('web-1', {})).samples.map(({ collected_at }) => collected_at - now);
    expect(await seen()).toEqual([-retention, 3600]);
    expect(metrics.passedOver).toBe(3);
    domain.clock.advance(1_000_000);
    expect(await seen()).toEqual([3600]);
    expect(await store.since(agent.id, 0, 10)).toHaveLength(2);
    await metrics.prune();
    expect(await store.since(agent.id, 0, 10)).toHaveLength(1);
    domain.clock.advance((3600 + retention) * 1000);
    expect(await metrics.latest('web-1')).toBeNull();
    expect(await metrics.latestOf(undefined)).toEqual({});
  });

  test('returns the newest samples of all matching agents', async () => {
    const { domain, actor, metrics } = await open();
    const web = await newAgent(domain, actor, 'web-1');
    const db = await newAgent(domain, actor, 'db-1');
    await newAgent(domain, actor, 'silent');
    await putOneTag(domain.context, actor, 'web-1', 'role', 'web');
    const at = domain.now();
    await metrics.record(web.id, [sampleAt(at), sampleAt(at - 1)]);
    await metrics.record(db.id, [sampleAt(at - 5)]);
    expect(await metrics.latestOf(undefined)).toEqual({ [web.id]: sampleAt(at), [db.id]: sampleAt(at - 5) });
    expect(await metrics.latestOf('')).toEqual({ [web.id]: sampleAt(at), [db.id]: sampleAt(at - 5) });
    expect(await metrics.latestOf('role=web')).toEqual({ [web.id]: sampleAt(at) });
    await expect(metrics.latestOf('role==')).rejects.toMatchObject({ code: 'selector_invalid' });
  });

  test('lists approved agents with connection state and recent samples', async () => {
    const { domain, actor, metrics } = await open();
    const web = await newAgent(domain, actor, 'web-1');
    const db = await newAgent(domain, actor, 'db-1');
    const rejected = await newAgent(domain, actor, 'gone-1');
    await putOneTag(domain.context, actor, 'web-1', 'role', 'web');
    const at = domain.now();
    await metrics.record(web.id, [sampleAt(at - 180)]);
    await metrics.record(db.id, [sampleAt(at - 181)]);
    await metrics.record(rejected.id, [sampleAt(at)]);
    await setStatus(domain.context, actor, 'gone-1', { status: 'rejected' });
    domain.connected.delete(db.id);
    const shown = {
      web: { node_id: web.id, name: 'web-1', connected: true, sample: sampleAt(at - 180) },
      db: { node_id: db.id, name: 'db-1', connected: false, sample: null },
    };
    const standings = await metrics.standings(undefined, 180);
    expect(standings).toHaveLength(2);
    expect(standings).toEqual(expect.arrayContaining([shown.web, shown.db]));
    expect(await metrics.standings('role=web', 180)).toEqual([shown.web]);
    await expect(metrics.standings('role==', 180)).rejects.toMatchObject({ code: 'selector_invalid' });
  });

  test('selects recent samples despite the machines’ clock skew', async () => {
    const { domain, actor, metrics } = await open();
    const behind = await newAgent(domain, actor, 'behind');
    const ahead = await newAgent(domain, actor, 'ahead');
    const correct = await newAgent(domain, actor, 'right');
    domain.clockAheadSecs.set(behind.id, -1000).set(ahead.id, 1000);
    const at = domain.now();
    await metrics.record(behind.id, [sampleAt(at - 1000)]);
    await metrics.record(ahead.id, [sampleAt(at + 1000)]);
    await metrics.record(correct.id, [sampleAt(at)]);
    const shown = async () =>
      (await metrics.standings(undefined, 180)).flatMap(({ name, sample }) => (sample === null ? [] : [name])).sort();
    expect(await shown()).toEqual(['ahead', 'behind', 'right']);
    domain.clock.advance(181_000);
    expect(await shown()).toEqual([]);
  });

  test('hides a removed agent’s samples and prunes them later', async () => {
    const { domain, actor, metrics, store } = await open();
    const key = await newAgent(domain, actor, 'web-1');
    const at = domain.now();
    await metrics.record(key.id, [sampleAt(at)]);
    await setStatus(domain.context, actor, 'web-1', { status: 'rejected' });
    expect(await metrics.latest(key.id)).toEqual(sampleAt(at));
    await removeAgent(domain.context, actor, key.id);
    await expect(metrics.list(key.id, {})).rejects.toMatchObject({ code: 'agent_not_found' });
    await expect(metrics.latest('web-1')).rejects.toMatchObject({ code: 'agent_not_found' });
    expect(await metrics.latestOf(undefined)).toEqual({});
    expect(await metrics.standings(undefined, 180)).toEqual([]);
    // A removed agent's samples are pruned like expired ones.
    expect(await store.since(key.id, 0, 9)).toHaveLength(1);
    domain.clock.advance(3 * retention * 1000);
    await metrics.prune();
    expect(await store.since(key.id, 0, 9)).toEqual([]);
  });

  test('stores no duplicate or implausible samples from a hostile agent', async () => {
    const { domain, actor, metrics, store } = await open();
    const agent = await newAgent(domain, actor, 'web-1');
    const at = domain.now();
    const burst = (from: number) => Array.from({ length: 48 }, (_, n) => sampleAt(from + n, { uptime: n }));
    await Promise.all(Array.from({ length: 300 }, () => metrics.record(agent.id, burst(at - 100))));
    // These times are expired, far in the future, or before 1970. The samples are acknowledged without being stored.
    for (const from of [0, -5_000_000_000, at + 4000, Number.MAX_SAFE_INTEGER - 100, at - retention - 100])
      await metrics.record(agent.id, burst(from));
    expect(await store.since(agent.id, Number.MIN_SAFE_INTEGER, 100_000)).toEqual(burst(at - 100));
    expect(store.stats()).toMatchObject({ queued: 0, failed: 0 });
  });

  test('forwards only samples that are stored', async () => {
    const { domain, actor, store } = await open();
    const agent = await newAgent(domain, actor, 'web-1');
    const announced: [string, number[]][] = [];
    const metrics = createMetrics(domain.context, store, retention, (nodeId, samples) =>
      announced.push([nodeId, samples.map(({ collected_at }) => collected_at - domain.now())]),
    );
    const at = domain.now();
    await metrics.record(agent.id, [sampleAt(at - 1), sampleAt(at - retention - 1), sampleAt(at)]);
    await metrics.record(agent.id, [sampleAt(at + 5000)]);
    await store.close();
    await expect(metrics.record(agent.id, [sampleAt(at + 1)])).rejects.toMatchObject({ code: 'draining' });
    expect(announced).toEqual([[agent.id, [-1, 0]]]);
  });
});
