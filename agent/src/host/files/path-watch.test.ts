import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { PathWatch } from './path-watch.ts';

/** On real directories: what the kernel tells, and when it says nothing, is what this is about. */
describe('watched paths', () => {
  let root: string;
  let clock: ManualClock;
  let told: Set<string>;
  let warnings: string[];
  let watch: PathWatch;
  const start = (most?: number) =>
    new PathWatch({
      clock,
      changed: (path) => told.add(path.slice(root.length)),
      warn: (fields, message) => warnings.push(`${JSON.stringify(fields)} ${message}`),
      ...(most === undefined ? {} : { most }),
    });
  beforeEach(() => {
    root = mkdtempSync(`${tmpdir()}/muster-watch-`);
    clock = new ManualClock();
    told = new Set();
    warnings = [];
    watch = start();
  });
  afterEach(() => {
    watch.end();
    rmSync(root, { recursive: true, force: true });
  });
  const set = (...paths: string[]) => watch.set(paths.map((path) => `${root}${path}`));
  /** What a change makes it tell: until it has told these, or, for none, until another change has been told. */
  const expectTold = async (paths: string[], change: () => void) => {
    told.clear();
    change();
    if (paths.length > 0) await expect.poll(() => [...told], { interval: 2 }).toEqual(expect.arrayContaining(paths));
    // Events come in order: when this one has been told, nothing of before is still to come.
    writeFileSync(`${root}/marker`, `${Math.random()}`);
    await expect.poll(() => told.has('/marker'), { interval: 2 }).toBe(true);
    told.delete('/marker');
    expect([...told].sort()).toEqual([...paths].sort());
  };

  it('tell of content, mode, owner, times, replacement and removal, and not of what is beside them', async () => {
    mkdirSync(`${root}/d`);
    writeFileSync(`${root}/d/f`, 'x');
    set('/d/f', '/d', '/marker');
    await expectTold(['/d/f'], () => writeFileSync(`${root}/d/f`, 'y'));
    await expectTold(['/d/f'], () => chmodSync(`${root}/d/f`, 0o600));
    if (process.getuid?.() === 0) await expectTold(['/d/f'], () => chownSync(`${root}/d/f`, 1, 1));
    await expectTold(['/d/f'], () => utimesSync(`${root}/d/f`, 1, 1));
    await expectTold([], () => writeFileSync(`${root}/d/other`, 'x'));
    for (let i = 0; i < 2; i++)
      await expectTold(['/d/f'], () => {
        writeFileSync(`${root}/d/f.new`, 'z');
        renameSync(`${root}/d/f.new`, `${root}/d/f`);
      });
    await expectTold(['/d/f'], () => unlinkSync(`${root}/d/f`));
    await expectTold(['/d/f'], () => symlinkSync('/etc/hostname', `${root}/d/f`));
    await expectTold(['/d'], () => chmodSync(`${root}/d`, 0o700));
  });

  it('are found in directories that come later, go, and are put in the place of others', async () => {
    set('/a/b/c/f', '/marker');
    await expectTold(['/a/b/c/f'], () => mkdirSync(`${root}/a/b/c`, { recursive: true }));
    await expectTold(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
    await expectTold(['/a/b/c/f'], () => renameSync(`${root}/a`, `${root}/old`));
    await expectTold([], () => writeFileSync(`${root}/old/b/c/f`, 'nobody looks there any more'));
    await expectTold(['/a/b/c/f'], () => {
      mkdirSync(`${root}/new/b/c`, { recursive: true });
      renameSync(`${root}/new`, `${root}/a`);
    });
    await expectTold(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
    await expectTold(['/a/b/c/f'], () => rmSync(`${root}/a`, { recursive: true }));
    await expectTold(['/a/b/c/f'], () => mkdirSync(`${root}/a/b/c`, { recursive: true }));
    await expectTold(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
  });

  it('may be all that is in a directory, which may have a child of its own name', async () => {
    mkdirSync(`${root}/units/units`, { recursive: true });
    set('/units/', '/marker');
    await expectTold(['/units/'], () => symlinkSync('x', `${root}/units/invocation:a.service`));
    await expectTold(['/units/'], () => unlinkSync(`${root}/units/invocation:a.service`));
    await expectTold(['/units/'], () => rmSync(`${root}/units/units`, { recursive: true }));
  });

  it('share the watches of their directories, which go when nobody needs them', async () => {
    mkdirSync(`${root}/d/e`, { recursive: true });
    set('/marker');
    const base = watch.size;
    set('/marker', ...Array.from({ length: 500 }, (_, i) => `/d/${i}`));
    expect(watch.size).toBe(base + 1);
    set('/marker', '/d/e/f', '/d/1');
    expect(watch.size).toBe(base + 2);
    await expectTold(['/d/1'], () => {
      writeFileSync(`${root}/d/1`, 'x');
      writeFileSync(`${root}/d/2`, 'x');
    });
    set('/marker');
    expect(watch.size).toBe(base);
    await expectTold([], () => writeFileSync(`${root}/d/1`, 'y'));
    watch.set([]);
    expect(watch.size).toBe(0);
  });

  it('that no watch is left for are said once', async () => {
    for (const name of ['a', 'b', 'c']) mkdirSync(`${root}/${name}`);
    watch.end();
    watch = start(root.split('/').length + 1);
    set('/a/f', '/b/f', '/c/f', '/marker');
    expect(warnings.length).toBe(1);
    expect(warnings[0]).toContain('more than');
    await expectTold([], () => writeFileSync(`${root}/c/f`, 'x'));
  });

  it('in which too much happens are left alone for a while, and looked at then', async () => {
    mkdirSync(`${root}/d`);
    set('/d/f', '/marker');
    const before = watch.size;
    for (let i = 0; i < 1200; i++) {
      writeFileSync(`${root}/d/noise`, 'x');
      unlinkSync(`${root}/d/noise`);
    }
    await expect.poll(() => watch.size, { interval: 5 }).toBe(before - 1);
    await expectTold([], () => writeFileSync(`${root}/d/f`, 'x'));
    clock.advance(30_000);
    await expect.poll(() => [...told]).toEqual(['/d/f']);
    expect(watch.size).toBe(before);
    await expectTold(['/d/f'], () => writeFileSync(`${root}/d/f`, 'y'));
  });
});
