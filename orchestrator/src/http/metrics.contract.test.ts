import { expect, test } from 'vitest';
import { bearer } from '../../test/app-fixture.ts';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { newAgent } from '../../test/domain.ts';
import { realApiFixture } from '../../test/real-api.ts';
import { sampleAt, samplesFixture } from '../../test/samples.ts';
import { removeAgent, setStatus } from '../domain/agents/agents.ts';

describeAnyDatabase('samples over HTTP', (fixture) => {
  const stores = samplesFixture(fixture);
  const openApi = realApiFixture();

  async function open() {
    const api = await openApi(fixture, await stores.open());
    const { app, token, domain, actor, agent, metrics } = api;
    const get = (path: string) =>
      app.inject({ url: `/api/v1${path}`, headers: { ...bearer('admin'), authorization: `Bearer ${token}` } });
    /**
     * Time of the first sample: an hour ago, so that no sample expires during the test, rounded to a multiple of every
     * step in this file.
     */
    const at = Math.floor((domain.now() - 3600) / 600) * 600;
    await metrics.record(agent.id, [
      sampleAt(at, { cpu_usage: 10, net_rx_bytes: 100, uptime: 50 }),
      sampleAt(at + 60, { net_rx_bytes: 900, uptime: 110 }),
      // The samples include a machine restart, a gap, and samples without network values.
      sampleAt(at + 120, { cpu_usage: 40, net_rx_bytes: 7, uptime: 5 }),
      sampleAt(at + 600, { load1: 0.5 }),
    ]);
    return { get, at, agent, domain, actor, metrics, app };
  }
  const timesIn = (body: { samples: { collected_at: number }[] }, at: number) =>
    body.samples.map(({ collected_at }) => collected_at - at);

  test('accepts the documented values for since, limit, and step, and refuses all other values', async () => {
    const { get, at, agent } = await open();
    const list = '/agents/web-1/metrics';
    const seen: Record<string, number[] | number> = {};
    const far = '9'.repeat(64);
    for (const query of [
      '',
      `?since=0`,
      `?since=${at + 60}`,
      `?since=${at + 601}`,
      `?since=${at + 1_000_000}`,
      `?since=${far}`,
      '?limit=0',
      '?limit=2',
      `?limit=${far}`,
      `?limit=0&since=${at + 601}`,
      '?step=600',
      '?step=600&limit=1',
      '?step=600&limit=0',
      `?step=600&since=${at + 601}`,
      '?step=1',
      '?since=-1',
      '?since=x',
      '?since=1.5',
      '?since=1e9',
      '?since=',
      '?since=1&since=2',
      '?limit=-1',
      '?step=0',
      '?step=-60',
      '?step=1.5',
      '?until=5',
    ]) {
      const answer = await get(`${list}${query}`);
      if (answer.statusCode === 204) expect(answer.body).toBe('');
      seen[query.replaceAll(far, 'far')] = answer.statusCode === 200 ? timesIn(answer.json(), at) : answer.statusCode;
      if (answer.statusCode === 200) expect(answer.json().node_id).toBe(agent.id);
    }
    const all = [0, 60, 120, 600];
    expect(seen).toEqual({
      '': all,
      '?since=0': all,
      [`?since=${at + 60}`]: all.slice(1),
      [`?since=${at + 601}`]: 204,
      [`?since=${at + 1_000_000}`]: 204,
      '?since=far': 204,
      '?limit=0': [],
      '?limit=2': [120, 600],
      '?limit=far': all,
      [`?limit=0&since=${at + 601}`]: [],
      '?step=600': [0, 600],
      '?step=600&limit=1': [600],
      '?step=600&limit=0': [],
      [`?step=600&since=${at + 601}`]: 204,
      '?step=1': all,
      ...Object.fromEntries(
        ['since=-1', 'since=x', 'since=1.5', 'since=1e9', 'since=', 'since=1&since=2', 'limit=-1'].map((query) => [
          `?${query}`,
          400,
        ]),
      ),
      ...Object.fromEntries(['step=0', 'step=-60', 'step=1.5', 'until=5'].map((query) => [`?${query}`, 400])),
    });
  });

  test('ignores null values in averages, and returns the last value for counters', async () => {
    const { get, at } = await open();
    const answer = await get('/agents/web-1/metrics?step=600');
    expect(answer.json().samples).toEqual([
      sampleAt(at, { cpu_usage: 25, net_rx_bytes: 7, uptime: 5 }),
      sampleAt(at + 600, { load1: 0.5 }),
    ]);
    // The step is longer than the range, so there is one bucket, which begins at a multiple of the step.
    const [whole, ...more] = (await get('/agents/web-1/metrics?step=86400')).json().samples;
    expect(more).toEqual([]);
    expect(whole).toEqual(sampleAt(at - (at % 86_400), { cpu_usage: 25, load1: 0.5, net_rx_bytes: 7, uptime: 5 }));
    const longest = (await get(`/agents/web-1/metrics?step=${'9'.repeat(64)}`)).json().samples;
    expect(longest).toHaveLength(1);
    expect(longest[0].collected_at % 31_536_000).toBe(0);
  });

  test('returns 204 for an agent without samples and 404 for an unknown agent, and omits both from the latest samples', async () => {
    const { get, at, agent, domain, actor, metrics } = await open();
    const silent = await newAgent(domain, actor, 'silent');
    const removed = await newAgent(domain, actor, 'gone');
    await metrics.record(removed.id, [sampleAt(at)]);
    await setStatus(domain.context, actor, 'gone', { status: 'rejected' });
    await removeAgent(domain.context, actor, removed.id);
    const statuses: Record<string, number[]> = {};
    for (const who of [
      'web-1',
      agent.id,
      'silent',
      silent.id,
      'gone',
      removed.id,
      'nobody',
      'f'.repeat(32),
      '%00',
      '..%2f',
    ])
      statuses[who] = [
        (await get(`/agents/${who}/metrics`)).statusCode,
        (await get(`/agents/${who}/metrics/latest`)).statusCode,
      ];
    expect(statuses).toEqual({
      'web-1': [200, 200],
      [agent.id]: [200, 200],
      silent: [204, 204],
      [silent.id]: [204, 204],
      ...Object.fromEntries(
        ['gone', removed.id, 'nobody', 'f'.repeat(32), '%00', '..%2f'].map((who) => [who, [404, 404]]),
      ),
    });
    const newest = sampleAt(at + 600, { load1: 0.5 });
    expect((await get('/agents/web-1/metrics/latest')).json()).toEqual(newest);
    expect((await get('/metrics/latest')).json()).toEqual({ [agent.id]: newest });
    expect((await get('/metrics/latest?filter=role%3Dweb')).json()).toEqual({ [agent.id]: newest });
    expect((await get('/metrics/latest?filter=role%3Ddb')).json()).toEqual({});
    expect((await get('/metrics/latest?filter=role%3D%3D')).json()).toMatchObject({ code: 'selector_invalid' });
    expect((await get('/metrics/latest?limit=1')).statusCode).toBe(400);
  });
});
