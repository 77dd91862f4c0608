import { readFileSync, statfsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { measureNames, type Sample, sampleSchema } from '@muster/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { defaultConfig } from '../config.ts';
import { type MachineSource, machineSource } from '../host/machine-source.ts';
import { SampleBuffer } from './sample-buffer.ts';
import { defaultMetrics, type MetricsSettings, Sampler } from './sampler.ts';

let clock: ManualClock;
let buffer: SampleBuffer;
let settings: MetricsSettings;
let files: Record<string, string>;
let logged: { fields: object; message: string }[];
/** Network cards, and interfaces on top of other interfaces. */
let interfaces: Record<string, 'card' | 'upper' | 'loose'>;
let capacity: MachineSource['capacity'];
let changes: number;

const netOf = (values: Record<string, [number, number]>) =>
  `head|\n${Object.entries(values)
    .map(([name, [received, sent]]) => `  ${name}: ${received} 0 0 0 0 0 0 0 ${sent} 0 0 0 0 0 0 0\n`)
    .join('')}`;

beforeEach(() => {
  clock = new ManualClock();
  buffer = new SampleBuffer(8);
  settings = { enabled: true, collection_interval: 30 };
  logged = [];
  changes = 0;
  interfaces = { eth0: 'card', br0: 'upper' };
  capacity = async () => ({ total: 100, free: 30 });
  files = {
    '/proc/stat': 'cpu  0 0 0 0 0 0 0 0 0 0\n',
    '/proc/meminfo': 'MemTotal: 8 kB\nMemAvailable: 3 kB\nSwapTotal: 4 kB\nSwapFree: 2 kB\n',
    '/proc/loadavg': '0.50 1 1 1/95 1\n',
    '/proc/uptime': '77.50 1\n',
    '/proc/net/dev': netOf({ eth0: [10, 20], br0: [10, 20], lo: [5, 5] }),
    '/proc/self/mountinfo': '27 1 8:1 / / rw - ext4 /dev/sda1 rw\n',
  };
});

const source: MachineSource = {
  text: (path) => files[path] ?? null,
  names: (path) => {
    if (path === '/proc') return ['1', '2', 'self'];
    const name = path.replace('/sys/class/net/', '');
    return interfaces[name] === 'upper' ? ['lower_eth0', 'mtu'] : ['mtu'];
  },
  exists: (path) =>
    Object.entries(interfaces).some(([name, kind]) => kind === 'card' && path.includes(`/${name}/device`)),
  capacity: (path) => capacity(path),
};

function start(given: MachineSource = source): Sampler {
  const say = (fields: object, message: string) => void logged.push({ fields, message });
  const sampler = new Sampler({
    source: given,
    buffer,
    clock,
    log: { debug() {}, warn: say, error: say },
    settings: () => settings,
    changed: () => void changes++,
  });
  sampler.update();
  return sampler;
}

const blank = Object.fromEntries(measureNames.map((name) => [name, null])) as Omit<Sample, 'collected_at'>;

/** Advances time, and completes all due work. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    clock.advance(Math.min(left, 1_000));
    await new Promise((resolve) => setImmediate(resolve));
  }
}
const samples = (): Sample[] =>
  Array.from({ length: buffer.end - buffer.first }, (_, n) => buffer.at(buffer.first + n));
const times = () => samples().map(({ collected_at }) => collected_at - 1_800_000_000);

describe('samples', () => {
  test('takes the first sample seconds after startup, with the CPU usage since startup', async () => {
    start();
    await pass(4_999);
    expect(samples()).toEqual([]);
    files['/proc/stat'] = 'cpu  30 0 0 70 0 0 0 0 0 0\n';
    await pass(1);
    expect(samples()).toEqual([
      {
        collected_at: 1_800_000_005,
        cpu_usage: 30,
        memory_total: 8192,
        memory_used: 5120,
        swap_used: 2048,
        disk_total: 100,
        disk_used: 70,
        load1: 0.5,
        net_rx_bytes: 10,
        net_tx_bytes: 20,
        processes: 2,
        uptime: 77,
      },
    ]);
    files['/proc/stat'] = 'cpu  130 0 0 70 0 0 0 0 0 0\n';
    await pass(30_000);
    expect(samples()[1]).toMatchObject({ collected_at: 1_800_000_035, cpu_usage: 100 });
    await pass(60_000);
    expect(times()).toEqual([5, 35, 65, 95]);
  });

  test('records null only for missing measures', async () => {
    const sampleAll = async () => {
      await pass(30_000);
      return samples().at(-1)!;
    };
    start();
    await pass(5_000);
    const nulls: [string, (keyof Sample)[]][] = [
      ['/proc/stat', ['cpu_usage']],
      ['/proc/meminfo', ['memory_total', 'memory_used', 'swap_used']],
      ['/proc/loadavg', ['load1']],
      ['/proc/uptime', ['uptime']],
      ['/proc/net/dev', ['net_rx_bytes', 'net_tx_bytes']],
      ['/proc/self/mountinfo', ['disk_total', 'disk_used']],
    ];
    let ticks = 0;
    const work = () => {
      files['/proc/stat'] = `cpu  ${++ticks} 0 0 ${ticks} 0 0 0 0 0 0\n`;
    };
    for (const [path, names] of nulls) {
      work();
      expect(Object.values(await sampleAll()), path).not.toContain(null);
      for (const broken of [undefined, '', '\0\0 -1 garbage\n']) {
        work();
        const text = files[path]!;
        if (broken === undefined) delete files[path];
        else files[path] = broken;
        const sample = await sampleAll();
        expect(
          Object.keys(sample).filter((name) => sample[name as keyof Sample] === null),
          path,
        ).toEqual(names);
        files[path] = text;
      }
      // The CPU usage can be computed only from two new readings.
      if (path === '/proc/stat') expect((await sampleAll()).cpu_usage).toBeNull();
    }
    expect(logged.map(({ message }) => message)).toEqual([expect.stringContaining('the sample buffer is full')]);
  });

  test('inspects the network interfaces again when they change', async () => {
    start();
    await pass(5_000);
    interfaces = { eth0: 'card', eth1: 'card' };
    files['/proc/net/dev'] = netOf({ eth0: [11, 21], eth1: [5, 6] });
    await pass(30_000);
    expect(samples().map(({ net_rx_bytes }) => net_rx_bytes)).toEqual([10, 16]);
  });

  test('records null for the disk values while a disk hangs', async () => {
    capacity = () => new Promise(() => {});
    start();
    await pass(5_000);
    expect(samples()).toEqual([]);
    await pass(2_000);
    expect(samples()).toMatchObject([{ collected_at: 1_800_000_005, disk_total: null, disk_used: null, uptime: 77 }]);
    await pass(28_000);
    expect(times()).toEqual([5, 35]);
  });

  test('immediately applies a new interval, and stops or starts when metrics are disabled or enabled', async () => {
    const sampler = start();
    await pass(5_000);
    settings = { enabled: true, collection_interval: 2 };
    sampler.update();
    await pass(2_000);
    await pass(2_000);
    expect(times()).toEqual([5, 7, 9]);
    settings = { enabled: false, collection_interval: 2 };
    sampler.update();
    await pass(60_000);
    // Samples are not retained while metrics are disabled.
    expect(samples()).toEqual([]);
    expect(clock.next).toBeNull();
    files['/proc/stat'] = 'cpu  500 0 0 500 0 0 0 0 0 0\n';
    settings = { enabled: true, collection_interval: 30 };
    sampler.update();
    files['/proc/stat'] = 'cpu  500 0 0 600 0 0 0 0 0 0\n';
    await pass(5_000);
    expect(samples()).toMatchObject([{ collected_at: 1_800_000_074, cpu_usage: 0 }]);
    sampler.end();
    expect(clock.next).toBeNull();
  });

  test('skips the samples that were due during a suspension, and keeps the interval after a late sample', async () => {
    let late = 10_000;
    const after = clock.after.bind(clock);
    start();
    clock.after = (ms, action) => after(ms + late, action);
    await pass(5_000);
    late = 0;
    await pass(90_000);
    expect(times()).toEqual([5, 45, 65, 95]);
    late = 100_000;
    await pass(30_000);
    late = 0;
    await pass(160_000);
    expect(times()).toEqual([5, 45, 65, 95, 125, 255, 285]);
  });

  test('never takes two samples in the same second', async () => {
    settings = { enabled: true, collection_interval: 1 };
    start();
    for (let n = 0; n < 3; n++) await pass(1_000);
    expect(times()).toEqual([1, 2, 3]);
    // Makes the wall clock run slightly slow.
    clock.jump(-5);
    await pass(1_000);
    expect(times()).toEqual([1, 2, 3]);
    await pass(5);
    expect(times()).toEqual([1, 2, 3, 4]);
    await pass(1_000);
    expect(times()).toEqual([1, 2, 3, 4, 5]);
  });

  test('waits for the clock to catch up after a small step back, because that period already has samples', async () => {
    start();
    await pass(5_000);
    await pass(30_000);
    clock.jump(-100_000);
    for (let n = 0; n < 5; n++) await pass(30_000);
    expect(times()).toEqual([5, 35, 55, 85]);
    expect(logged).toEqual([]);
  });

  test('drops samples with future timestamps after the clock was set back by a large amount', async () => {
    start();
    await pass(5_000);
    buffer.drop(buffer.end);
    await pass(30_000);
    await pass(30_000);
    expect(times()).toEqual([35, 65]);
    clock.jump(-3_600_000);
    await pass(30_000);
    expect(times()).toEqual([95 - 3600]);
    expect(logged).toEqual([{ fields: { by_secs: 3570, dropped: 2 }, message: expect.stringContaining('set back') }]);
    // Setting the clock forward only leaves a gap.
    clock.jump(86_400_000);
    await pass(30_000);
    expect(times()).toEqual([95 - 3600, 125 - 3600 + 86_400]);
  });

  test('continues from the previous process’s samples, and waits for the clock to be set', async () => {
    const before = (ahead: number) => {
      buffer = new SampleBuffer(8);
      for (const at of [-60, -30]) buffer.push({ ...blank, collected_at: clock.now() / 1000 + ahead + at });
      logged = [];
      return start();
    };
    let sampler = before(0);
    await pass(5_000);
    expect(times()).toEqual([-60, -30, 5]);
    sampler.end();

    // The machine booted without the correct time, and sets its clock two minutes later.
    clock.jump(-86_400_000);
    sampler = before(86_400);
    await pass(120_000);
    expect(times()).toEqual([-55, -25]);
    clock.jump(86_400_000);
    await pass(30_000);
    expect(times()).toEqual([-55, -25, 130]);
    expect(logged).toEqual([]);
    sampler.end();

    // The samples are sent while the sampler waits, without notifying the sampler.
    sampler = before(86_400);
    await pass(120_000);
    buffer.drop(buffer.end);
    await pass(180_000);
    expect(times()).toEqual([]);
    await pass(30_000);
    expect(times()).toEqual([460]);
    expect(logged).toEqual([expect.objectContaining({ message: expect.stringContaining('set back') })]);
    sampler.end();
    sampler = before(86_400);
    await pass(330_000);
    expect(times()).toEqual([790]);
    expect(logged).toMatchObject([{ fields: { dropped: 2 } }]);
    sampler.end();
  });

  test("drops the previous process's samples and reports the change if metrics are disabled", async () => {
    buffer.push({ ...blank, collected_at: 1_799_999_000 });
    settings = { enabled: false, collection_interval: 30 };
    const sampler = start();
    expect(samples()).toEqual([]);
    expect(changes).toBe(1);
    settings = { enabled: true, collection_interval: 30 };
    sampler.update();
    await pass(35_000);
    expect(changes).toBe(3);
  });

  test('drops the oldest samples when the buffer is full, and warns once until samples are sent', async () => {
    start();
    await pass(5_000);
    for (let n = 0; n < 10; n++) await pass(30_000);
    expect(times()).toEqual([95, 125, 155, 185, 215, 245, 275, 305]);
    expect(logged).toHaveLength(1);
    buffer.drop(buffer.end);
    for (let n = 0; n < 9; n++) await pass(30_000);
    expect(logged).toHaveLength(2);
  });

  test('measures plausible values on the real machine', async () => {
    start(machineSource);
    for (let n = 0; samples().length === 0 && n < 200; n++) {
      if (n === 0) clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const [sample] = samples();
    expect(sampleSchema.parse(sample)).toEqual(sample);
    if (process.platform !== 'linux') return;
    expect(sample).toMatchObject({ memory_total: totalmem() });
    expect(Math.abs(sample!.uptime! - Number.parseFloat(readFileSync('/proc/uptime', 'utf8')))).toBeLessThan(30);
    expect(sample!.processes).toBeGreaterThan(2);
    const { blocks, bsize } = statfsSync('/');
    if (sample!.disk_total !== null) expect(sample!.disk_total).toBeGreaterThanOrEqual(Math.min(blocks * bsize, 1));
  });
});

test('uses the defaults from the configuration schema if there is no configuration', () => {
  expect(defaultMetrics).toEqual(defaultConfig.metrics);
});
