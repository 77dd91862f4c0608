import { expect, it } from 'vitest';
import { describeDatabases } from '../../test/databases.ts';
import { sampleAt, samplesFixture } from '../../test/samples.ts';

const hour = 3600;
/** A full hour, so that the chunks of a day begin here. */
const t0 = 1_800_000_000 - (1_800_000_000 % hour);
const node = (n: number) => n.toString(16).padStart(32, '0');
const all = Number.MAX_SAFE_INTEGER;

describeDatabases('samples', (fixture) => {
  const stores = samplesFixture(fixture);

  it('come back as they were, oldest first, also after it was opened again', async () => {
    const at = await stores.place();
    const store = await stores.open({ at });
    const full = sampleAt(t0 + 120, {
      cpu_usage: 12.5,
      memory_total: 2 ** 53 - 1,
      memory_used: 0,
      swap_used: 1,
      disk_total: 5_000_000_000_000,
      disk_used: 2,
      load1: 0.25,
      net_rx_bytes: 3,
      net_tx_bytes: 4,
      processes: 5,
      uptime: 6,
    });
    await store.add(node(1), [full, sampleAt(t0)]);
    await store.add(node(2), [sampleAt(t0 + 60)]);
    expect(await store.since(node(1), 0, all)).toEqual([sampleAt(t0), full]);
    await store.close();
    const again = await stores.open({ at });
    expect(await again.since(node(1), 0, all)).toEqual([sampleAt(t0), full]);
    expect(await again.since(node(2), 0, all)).toEqual([sampleAt(t0 + 60)]);
    expect(await again.since(node(3), 0, all)).toEqual([]);
    await again.add(node(1), [sampleAt(t0 + 180)]);
    expect(await again.since(node(1), 0, all)).toHaveLength(3);
  });

  it('are kept once for each agent and time, the first as it was', async () => {
    const store = await stores.open();
    await store.add(node(1), [sampleAt(t0, { uptime: 1 }), sampleAt(t0, { uptime: 2 })]);
    await Promise.all([
      store.add(node(1), [sampleAt(t0, { uptime: 3 })]),
      store.add(node(1), [sampleAt(t0 - 60, { uptime: 4 })]),
    ]);
    expect(await store.since(node(1), 0, all)).toEqual([sampleAt(t0 - 60, { uptime: 4 }), sampleAt(t0, { uptime: 1 })]);
  });

  it('are limited to the newest, and to those since a time, across slices', async () => {
    const store = await stores.open();
    const times = Array.from({ length: 30 }, (_, n) => t0 + n * 1000);
    await store.add(
      node(1),
      times.toReversed().map((at) => sampleAt(at)),
    );
    const seen = async (since: number, limit: number) =>
      (await store.since(node(1), since, limit)).map(({ collected_at }) => collected_at);
    expect(await seen(0, all)).toEqual(times);
    expect(await seen(0, 7)).toEqual(times.slice(-7));
    expect(await seen(times[20]!, all)).toEqual(times.slice(20));
    expect(await seen(times[20]! + 1, 5)).toEqual(times.slice(-5));
    expect(await seen(times[29]! + 1, all)).toEqual([]);
    expect(await seen(0, 0)).toEqual([]);
  });

  it('are averaged over buckets, what is null left out and null where nothing is', async () => {
    const store = await stores.open();
    // A bucket of 1,000 s from 500 s before a full hour lies in two slices.
    const edge = Math.ceil(t0 / 1000) * 1000;
    const step = 1000;
    const inTwo = Math.floor((edge + 7200 - (edge % hour)) / step) * step;
    await store.add(node(1), [
      sampleAt(inTwo, { cpu_usage: 10, memory_used: 1 }),
      sampleAt(inTwo + 10, { cpu_usage: null, memory_used: 2 }),
      sampleAt(inTwo + 999, { cpu_usage: 40, memory_used: 2 }),
      sampleAt(inTwo + 1000, { load1: 0.5 }),
      sampleAt(inTwo + 5000, { cpu_usage: 1, disk_total: 9_000_000_000_000_000 }),
      sampleAt(inTwo + 5001, { cpu_usage: 2, disk_total: 9_000_000_000_000_000 }),
    ]);
    const buckets = [
      sampleAt(inTwo, { cpu_usage: 25, memory_used: 2 }),
      sampleAt(inTwo + 1000, { load1: 0.5 }),
      sampleAt(inTwo + 5000, { cpu_usage: 1.5, disk_total: 9_000_000_000_000_000 }),
    ];
    expect(await store.averages(node(1), 0, step, all)).toEqual(buckets);
    expect(await store.averages(node(1), 0, step, 2)).toEqual(buckets.slice(1));
    expect(await store.averages(node(1), 0, step, 0)).toEqual([]);
    expect(await store.averages(node(1), inTwo + 5001, step, all)).toEqual([
      sampleAt(inTwo + 5000, { cpu_usage: 2, disk_total: 9_000_000_000_000_000 }),
    ]);
    expect(await store.averages(node(2), 0, step, all)).toEqual([]);
    const whole = await store.averages(node(1), 0, 10 * 86_400, all);
    expect(whole).toHaveLength(1);
    expect(whole[0]?.cpu_usage).toBeCloseTo(53 / 4);
  });

  it('give the newest of many agents', async () => {
    const store = await stores.open();
    await Promise.all(
      Array.from({ length: 1200 }, (_, n) =>
        // Some were heard last some hours ago.
        store.add(node(n), [sampleAt(t0 - 60), sampleAt(t0 - (n % 5) * hour, { uptime: n })]),
      ),
    );
    const newest = await store.latest([...Array.from({ length: 1200 }, (_, n) => node(n)), 'nobody'], 0);
    expect(newest.size).toBe(1200);
    expect(newest.get(node(5))).toEqual(sampleAt(t0, { uptime: 5 }));
    expect(newest.get(node(6))).toEqual(sampleAt(t0 - 60));
    expect((await store.latest([node(5), node(6)], t0)).size).toBe(1);
    expect((await store.latest([], 0)).size).toBe(0);
  });

  it('go by slices once all of a slice is too old, and come again where it was', async () => {
    const at = await stores.place();
    const store = await stores.open({ at });
    for (const hours of [0, 1, 2])
      await store.add(node(1), [sampleAt(t0 + hours * hour), sampleAt(t0 + hours * hour + 1)]);
    expect(await store.since(node(1), 0, all)).toHaveLength(6);
    expect(await store.dropBefore(t0 + hour - 1)).toBe(0);
    expect(await store.dropBefore(t0 + 2 * hour)).toBe(2);
    expect(await store.dropBefore(t0 + 2 * hour)).toBe(0);
    expect(await store.since(node(1), 0, all)).toEqual([sampleAt(t0 + 2 * hour), sampleAt(t0 + 2 * hour + 1)]);
    await store.add(node(1), [sampleAt(t0)]);
    expect(await store.since(node(1), 0, all)).toHaveLength(3);
    await store.close();
    const again = await stores.open({ at });
    expect(await again.dropBefore(t0 + hour)).toBe(1);
    expect(await again.since(node(1), 0, all)).toHaveLength(2);
  });

  it('stay where they are when they are to be kept for longer or shorter', async () => {
    const at = await stores.place();
    for (const retentionSecs of [86_400, 40 * 86_400, 600, 7 * 86_400]) {
      const store = await stores.open({ at, retentionSecs });
      for (let n = 0; n < 20; n++) await store.add(node(1), [sampleAt(t0 + n * 1777 + retentionSecs)]);
      await store.close();
    }
    const store = await stores.open({ at });
    const found = (await store.since(node(1), 0, all)).map(({ collected_at }) => collected_at);
    expect(found).toHaveLength(80);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
  });

  it('of many agents share commits', async () => {
    const store = await stores.open();
    await Promise.all(Array.from({ length: 500 }, (_, n) => store.add(node(n), [sampleAt(t0)])));
    const { commits, stored, queued, failed } = store.stats();
    expect({ stored, queued, failed }).toEqual({ stored: 500, queued: 0, failed: 0 });
    expect(commits).toBeLessThan(5);
  });

  it('that were handed in are kept when it is closed, and nothing is taken afterwards', async () => {
    const at = await stores.place();
    const store = await stores.open({ at });
    const adding = store.add(node(1), [sampleAt(t0)]);
    await store.close();
    await adding;
    await expect(store.add(node(1), [sampleAt(t0 + 1)])).rejects.toMatchObject({ code: 'draining' });
    await expect(store.since(node(1), 0, all)).rejects.toMatchObject({ code: 'draining' });
    expect(await (await stores.open({ at })).since(node(1), 0, all)).toHaveLength(1);
  });
});
