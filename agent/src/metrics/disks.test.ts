import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import type { Capacity, MachineSource } from '../host/machine-source.ts';
import { DiskReader, sumRooms } from './disks.ts';

/** Disks whose responses the test controls. */
class TestDisks {
  readonly clock = new ManualClock();
  mounts = '';
  readonly queried: string[] = [];
  readonly open = new Map<string, { answer: (room: Capacity) => void; fail: (code: string) => void }>();
  readonly answers = new Map<string, Capacity | string>();
  readonly reader: DiskReader;

  constructor(...paths: string[]) {
    this.mount(...paths);
    const source: MachineSource = {
      text: () => this.mounts,
      names: () => [],
      exists: () => false,
      capacity: (path) => {
        this.queried.push(path);
        return new Promise((resolve, reject) => {
          const fail = (code: string) => reject(Object.assign(new Error(code), { code }));
          this.open.set(path, { answer: resolve, fail });
          const given = this.answers.get(path);
          if (typeof given === 'string') fail(given);
          else if (given !== undefined) resolve(given);
        });
      },
    };
    this.reader = new DiskReader(source, this.clock);
  }

  mount(...paths: string[]): void {
    this.mounts = paths.map((path, n) => `${n + 2} 1 8:${n} / ${path} rw - ext4 /dev/sd${n} rw`).join('\n');
  }

  async ticks(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const capacity = (total: number, free: number): Capacity => ({ total, free });

describe('the capacity of all disks', () => {
  test('adds up total and used space', async () => {
    const disks = new TestDisks('/', '/srv');
    disks.answers.set('/', capacity(100, 40)).set('/srv', capacity(1000, 900));
    expect(await disks.reader.read()).toEqual({ total: 1100, used: 160 });
    expect(disks.clock.next).toBeNull();
  });

  test('skips unmounted and inaccessible disks, and returns null if a disk fails or none is left', async () => {
    const disks = new TestDisks('/', '/srv');
    disks.answers.set('/', capacity(100, 40));
    for (const code of ['EACCES', 'ENOENT', 'ENOTDIR']) {
      disks.answers.set('/srv', code);
      expect(await disks.reader.read()).toEqual({ total: 100, used: 60 });
    }
    disks.answers.set('/srv', 'EIO');
    expect(await disks.reader.read()).toBeNull();
    disks.answers.set('/', 'EACCES').set('/srv', 'EACCES');
    expect(await disks.reader.read()).toBeNull();
    expect(await new TestDisks().reader.read()).toBeNull();
  });

  test('returns null after a disk hangs for two seconds, and queries no disk until that disk responds', async () => {
    const disks = new TestDisks('/', '/hung', '/srv');
    disks.answers.set('/', capacity(100, 40)).set('/srv', capacity(10, 5));
    const reading = disks.reader.read();
    await disks.ticks();
    disks.clock.advance(1_999);
    let settled = false;
    void reading.then(() => {
      settled = true;
    });
    await disks.ticks();
    expect(settled).toBe(false);
    disks.clock.advance(1);
    expect(await reading).toBeNull();
    for (let times = 0; times < 5; times++) expect(await disks.reader.read()).toBeNull();
    expect(disks.queried).toEqual(['/', '/hung']);

    disks.open.get('/hung')!.answer(capacity(20, 20));
    await disks.ticks();
    disks.answers.set('/hung', capacity(20, 20));
    expect(await disks.reader.read()).toEqual({ total: 130, used: 65 });
  });

  test('returns values after a hanging disk is unmounted, but not while two queries are pending', async () => {
    const disks = new TestDisks('/a', '/b', '/c');
    disks.answers.set('/b', capacity(5, 5)).set('/c', capacity(5, 5));
    const hang = async () => {
      const reading = disks.reader.read();
      await disks.ticks();
      disks.clock.advance(2_000);
      return await reading;
    };
    expect(await hang()).toBeNull();
    disks.mount('/b', '/c');
    expect(await disks.reader.read()).toEqual({ total: 10, used: 0 });
    disks.answers.delete('/b');
    expect(await hang()).toBeNull();
    disks.mount('/c');
    const before = disks.queried.length;
    expect(await disks.reader.read()).toBeNull();
    expect(disks.queried).toHaveLength(before);
    disks.open.get('/a')!.fail('EIO');
    await disks.ticks();
    expect(await disks.reader.read()).toEqual({ total: 5, used: 0 });
  });

  test('counts the shared free space of a pool once', () => {
    const pool = 'tank';
    const rooms = [
      { ...capacity(1000, 900), pool },
      { ...capacity(950, 900), pool },
      // This file system has a quota.
      { ...capacity(60, 20), pool },
      { ...capacity(500, 100), pool: 'rpool' },
      { ...capacity(7, 2), pool: null },
    ];
    expect(sumRooms(rooms)).toEqual({ total: 190 + 900 + 500 + 7, used: 190 + 400 + 5 });
    expect(sumRooms([{ ...capacity(5, 9), pool: null }])).toBeNull();
    expect(sumRooms([{ ...capacity(2 ** 60, 0), pool: null }])).toBeNull();
  });
});
