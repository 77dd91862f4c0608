import { expect, test } from 'vitest';
import { describeDatabases } from '../../../test/databases/databases.ts';
import { sampleAt, samplesFixture } from '../../../test/samples.ts';

const hour = 3600;
/** A full hour. With a retention period of one day, chunks start on the hour. */
const t0 = 1_800_000_000 - (1_800_000_000 % hour);
const node = (n: number) => n.toString(16).padStart(32, '0');
const all = Number.MAX_SAFE_INTEGER;

describeDatabases('samples', (fixture) => {
  const stores = samplesFixture(fixture);

  test('returns samples unchanged, oldest first, after the store is reopened', async () => {
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

  test('keeps the first of two samples that an agent took at the same time', async () => {
    const store = await stores.open();
    await store.add(node(1), [sampleAt(t0, { uptime: 1 }), sampleAt(t0, { uptime: 2 })]);
    await Promise.all([
      store.add(node(1), [sampleAt(t0, { uptime: 3 })]),
      store.add(node(1), [sampleAt(t0 - 60, { uptime: 4 })]),
    ]);
    expect(await store.since(node(1), 0, all)).toEqual([sampleAt(t0 - 60, { uptime: 4 }), sampleAt(t0, { uptime: 1 })]);
  });

  test('returns samples since a start time across chunks, limited to the newest', async () => {
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

  test('averages the non-null values in a bucket, and returns null if there are none', async () => {
    const store = await stores.open();
    // A bucket of 1,000 s that starts 500 s before a full hour and therefore spans two chunks.
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

  test('returns the last value for counters in a bucket, even if the machine restarted within the bucket', async () => {
    const store = await stores.open();
    // The samples are in two chunks, both of which are covered by one bucket.
    const step = 7200;
    const first = Math.floor((t0 + 7200) / step) * step;
    await store.add(node(1), [
      sampleAt(first, { uptime: 9000, net_rx_bytes: 9_007_199_254_740_991, net_tx_bytes: 10, load1: 1 }),
      sampleAt(first + 60, { uptime: 9060, net_tx_bytes: 999, load1: 2 }),
      sampleAt(first + 5000, { uptime: 5, net_tx_bytes: 7, load1: 3 }),
      sampleAt(first + 5060, { uptime: 65, load1: 6 }),
      sampleAt(first + step, { uptime: 100 }),
    ]);
    expect(await store.averages(node(1), 0, step, all)).toEqual([
      sampleAt(first, { uptime: 65, net_rx_bytes: 9_007_199_254_740_991, net_tx_bytes: 7, load1: 3 }),
      sampleAt(first + step, { uptime: 100 }),
    ]);
    expect(await store.averages(node(1), 0, step, 1)).toEqual([sampleAt(first + step, { uptime: 100 })]);
  });

  test('returns every bucket even if a chunk holds many samples', async () => {
    const store = await stores.open({ retentionSecs: 300 * 86_400 });
    const samples = Array.from({ length: 9000 }, (_, n) => sampleAt(t0 + n * 60, { load1: n, uptime: n }));
    await store.add(node(1), samples);
    expect(await store.since(node(1), 0, all)).toEqual(samples);
    expect(await store.since(node(1), t0 + 60 * 60, 5000)).toEqual(samples.slice(-5000));
    const days = await store.averages(node(1), 0, 86_400, all);
    expect(days.map(({ uptime }) => uptime).at(-1)).toBe(8999);
    expect(await store.averages(node(1), 0, 86_400, 3)).toEqual(days.slice(-3));
    const hours = await store.averages(node(1), 0, 3600, all);
    expect(hours).toEqual(
      Array.from({ length: 150 }, (_, n) => sampleAt(t0 + n * hour, { load1: n * 60 + 29.5, uptime: n * 60 + 59 })),
    );
    expect(await store.averages(node(1), 0, 3600, 100)).toEqual(hours.slice(-100));
  });

  if (fixture.kind === 'postgres')
    test('uses chunks that another process created or dropped', async () => {
      const at = await stores.place();
      const [one, other] = [await stores.open({ at }), await stores.open({ at, retentionSecs: 2 * 86_400 })];
      await other.add(node(1), [sampleAt(t0)]);
      // The new chunk overlaps the chunk that the first process would create.
      await one.add(node(1), [sampleAt(t0 + 1), sampleAt(t0 + 2 * hour)]);
      expect(await one.dropBefore(t0 + 2 * hour)).toBe(1);
      await other.add(node(1), [sampleAt(t0 + 2)]);
      await Promise.all([
        one.add(node(1), [sampleAt(t0 + 9 * hour)]),
        other.add(node(1), [sampleAt(t0 + 9 * hour + 1)]),
      ]);
      const seen = (await one.since(node(1), 0, all)).map(({ collected_at }) => collected_at - t0);
      expect(seen).toEqual([2, 2 * hour, 9 * hour, 9 * hour + 1]);
      expect(await other.since(node(1), 0, all)).toHaveLength(4);
      expect(one.stats().failed + other.stats().failed).toBe(0);
    });

  test('returns the newest samples of many agents', async () => {
    const store = await stores.open();
    await Promise.all(
      Array.from({ length: 1200 }, (_, n) =>
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

  test('drops a chunk after its last sample has expired, and creates it again on demand', async () => {
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

  test('keeps samples when the retention period changes', async () => {
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

  test('commits samples from many agents in one transaction', async () => {
    const store = await stores.open();
    await Promise.all(Array.from({ length: 500 }, (_, n) => store.add(node(n), [sampleAt(t0)])));
    const { commits, stored, queued, failed } = store.stats();
    expect({ stored, queued, failed }).toEqual({ stored: 500, queued: 0, failed: 0 });
    expect(commits).toBeLessThan(5);
  });

  test('stores accepted samples on close and refuses new samples', async () => {
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
