import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import type { MachineSource, Room } from '../host/machine-source.ts';
import { DiskReader, sumRooms } from './disks.ts';

/** Disks with answers that the test controls. */
class Shelf {
  readonly clock = new ManualClock();
  mounts = '';
  readonly asked: string[] = [];
  readonly open = new Map<string, { answer: (room: Room) => void; fail: (code: string) => void }>();
  readonly answers = new Map<string, Room | string>();
  readonly reader: DiskReader;

  constructor(...paths: string[]) {
    this.mount(...paths);
    const source: MachineSource = {
      text: () => this.mounts,
      names: () => [],
      exists: () => false,
      room: (path) => {
        this.asked.push(path);
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

const room = (total: number, free: number): Room => ({ total, free });

describe('the capacity of all disks', () => {
  test('sums total and used space', async () => {
    const shelf = new Shelf('/', '/srv');
    shelf.answers.set('/', room(100, 40)).set('/srv', room(1000, 900));
    expect(await shelf.reader.read()).toEqual({ total: 1100, used: 160 });
    expect(shelf.clock.next).toBeNull();
  });

  test('skips unmounted and inaccessible disks, and returns null if a disk fails or none is left', async () => {
    const shelf = new Shelf('/', '/srv');
    shelf.answers.set('/', room(100, 40));
    for (const code of ['EACCES', 'ENOENT', 'ENOTDIR']) {
      shelf.answers.set('/srv', code);
      expect(await shelf.reader.read()).toEqual({ total: 100, used: 60 });
    }
    shelf.answers.set('/srv', 'EIO');
    expect(await shelf.reader.read()).toBeNull();
    shelf.answers.set('/', 'EACCES').set('/srv', 'EACCES');
    expect(await shelf.reader.read()).toBeNull();
    expect(await new Shelf().reader.read()).toBeNull();
  });

  test('returns null after a disk hangs for two seconds, and queries no disk until it answers', async () => {
    const shelf = new Shelf('/', '/hung', '/srv');
    shelf.answers.set('/', room(100, 40)).set('/srv', room(10, 5));
    const reading = shelf.reader.read();
    await shelf.ticks();
    shelf.clock.advance(1_999);
    let settled = false;
    void reading.then(() => {
      settled = true;
    });
    await shelf.ticks();
    expect(settled).toBe(false);
    shelf.clock.advance(1);
    expect(await reading).toBeNull();
    for (let times = 0; times < 5; times++) expect(await shelf.reader.read()).toBeNull();
    expect(shelf.asked).toEqual(['/', '/hung']);

    shelf.open.get('/hung')!.answer(room(20, 20));
    await shelf.ticks();
    shelf.answers.set('/hung', room(20, 20));
    expect(await shelf.reader.read()).toEqual({ total: 130, used: 65 });
  });

  test('returns values after a hanging disk is unmounted, but not while two queries are pending', async () => {
    const shelf = new Shelf('/a', '/b', '/c');
    shelf.answers.set('/b', room(5, 5)).set('/c', room(5, 5));
    const hang = async () => {
      const reading = shelf.reader.read();
      await shelf.ticks();
      shelf.clock.advance(2_000);
      return await reading;
    };
    expect(await hang()).toBeNull();
    shelf.mount('/b', '/c');
    expect(await shelf.reader.read()).toEqual({ total: 10, used: 0 });
    shelf.answers.delete('/b');
    expect(await hang()).toBeNull();
    shelf.mount('/c');
    const before = shelf.asked.length;
    expect(await shelf.reader.read()).toBeNull();
    expect(shelf.asked).toHaveLength(before);
    shelf.open.get('/a')!.fail('EIO');
    await shelf.ticks();
    expect(await shelf.reader.read()).toEqual({ total: 5, used: 0 });
  });

  test('counts the shared free space of a pool once', () => {
    const pool = 'tank';
    const rooms = [
      { ...room(1000, 900), pool },
      { ...room(950, 900), pool },
      // This file system has a quota.
      { ...room(60, 20), pool },
      { ...room(500, 100), pool: 'rpool' },
      { ...room(7, 2), pool: null },
    ];
    expect(sumRooms(rooms)).toEqual({ total: 190 + 900 + 500 + 7, used: 190 + 400 + 5 });
    expect(sumRooms([{ ...room(5, 9), pool: null }])).toBeNull();
    expect(sumRooms([{ ...room(2 ** 60, 0), pool: null }])).toBeNull();
  });
});
