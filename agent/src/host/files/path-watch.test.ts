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
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { PathWatch } from './path-watch.ts';

/** Uses real directories, because the tests depend on kernel events. */
describe('a path watch', () => {
  let root: string;
  let clock: ManualClock;
  let reported: Set<string>;
  let warnings: string[];
  let watch: PathWatch;
  const start = (maxDirectories?: number) =>
    new PathWatch({
      clock,
      changed: (path) => reported.add(path.slice(root.length)),
      warn: (fields, message) => warnings.push(`${JSON.stringify(fields)} ${message}`),
      ...(maxDirectories === undefined ? {} : { maxDirectories }),
    });
  beforeEach(() => {
    root = mkdtempSync(`${tmpdir()}/muster-watch-`);
    clock = new ManualClock();
    reported = new Set();
    warnings = [];
    watch = start();
  });
  afterEach(() => {
    watch.end();
    rmSync(root, { recursive: true, force: true });
  });
  const set = (...paths: string[]) => watch.set(paths.map((path) => `${root}${path}`));
  /** Runs a change and expects reports for exactly the given paths. */
  const expectReported = async (paths: string[], change: () => void) => {
    reported.clear();
    change();
    if (paths.length > 0)
      await expect.poll(() => [...reported], { interval: 2 }).toEqual(expect.arrayContaining(paths));
    // Events arrive in order, so no earlier event is outstanding once the marker is reported.
    writeFileSync(`${root}/marker`, `${Math.random()}`);
    await expect.poll(() => reported.has('/marker'), { interval: 2 }).toBe(true);
    reported.delete('/marker');
    expect([...reported].sort()).toEqual([...paths].sort());
  };

  test('reports every kind of change at the watched paths, but no change to other files', async () => {
    mkdirSync(`${root}/d`);
    writeFileSync(`${root}/d/f`, 'x');
    set('/d/f', '/d', '/marker');
    await expectReported(['/d/f'], () => writeFileSync(`${root}/d/f`, 'y'));
    await expectReported(['/d/f'], () => chmodSync(`${root}/d/f`, 0o600));
    if (process.getuid?.() === 0) await expectReported(['/d/f'], () => chownSync(`${root}/d/f`, 1, 1));
    await expectReported(['/d/f'], () => utimesSync(`${root}/d/f`, 1, 1));
    await expectReported([], () => writeFileSync(`${root}/d/other`, 'x'));
    for (let i = 0; i < 2; i++)
      await expectReported(['/d/f'], () => {
        writeFileSync(`${root}/d/f.new`, 'z');
        renameSync(`${root}/d/f.new`, `${root}/d/f`);
      });
    await expectReported(['/d/f'], () => unlinkSync(`${root}/d/f`));
    await expectReported(['/d/f'], () => symlinkSync('/etc/hostname', `${root}/d/f`));
    await expectReported(['/d'], () => chmodSync(`${root}/d`, 0o700));
  });

  test('watches directories that are created later, removed, or replaced', async () => {
    set('/a/b/c/f', '/marker');
    await expectReported(['/a/b/c/f'], () => mkdirSync(`${root}/a/b/c`, { recursive: true }));
    await expectReported(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
    await expectReported(['/a/b/c/f'], () => renameSync(`${root}/a`, `${root}/old`));
    await expectReported([], () => writeFileSync(`${root}/old/b/c/f`, 'nobody looks there any more'));
    await expectReported(['/a/b/c/f'], () => {
      mkdirSync(`${root}/new/b/c`, { recursive: true });
      renameSync(`${root}/new`, `${root}/a`);
    });
    await expectReported(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
    await expectReported(['/a/b/c/f'], () => rmSync(`${root}/a`, { recursive: true }));
    await expectReported(['/a/b/c/f'], () => mkdirSync(`${root}/a/b/c`, { recursive: true }));
    await expectReported(['/a/b/c/f'], () => writeFileSync(`${root}/a/b/c/f`, 'x'));
  });

  test('reports changes to all entries of a directory, even to one with the same name as the directory', async () => {
    mkdirSync(`${root}/units/units`, { recursive: true });
    set('/units/', '/marker');
    await expectReported(['/units/'], () => symlinkSync('x', `${root}/units/invocation:a.service`));
    await expectReported(['/units/'], () => unlinkSync(`${root}/units/invocation:a.service`));
    await expectReported(['/units/'], () => rmSync(`${root}/units/units`, { recursive: true }));
  });

  test('uses one watch for each directory, and closes unused watches', async () => {
    mkdirSync(`${root}/d/e`, { recursive: true });
    set('/marker');
    const base = watch.size;
    set('/marker', ...Array.from({ length: 500 }, (_, i) => `/d/${i}`));
    expect(watch.size).toBe(base + 1);
    set('/marker', '/d/e/f', '/d/1');
    expect(watch.size).toBe(base + 2);
    await expectReported(['/d/1'], () => {
      writeFileSync(`${root}/d/1`, 'x');
      writeFileSync(`${root}/d/2`, 'x');
    });
    set('/marker');
    expect(watch.size).toBe(base);
    await expectReported([], () => writeFileSync(`${root}/d/1`, 'y'));
    watch.set([]);
    expect(watch.size).toBe(0);
  });

  test('warns once if the kernel has no more watches', async () => {
    for (const name of ['a', 'b', 'c']) mkdirSync(`${root}/${name}`);
    watch.end();
    watch = start(root.split('/').length + 1);
    set('/a/f', '/b/f', '/c/f', '/marker');
    expect(warnings.length).toBe(1);
    expect(warnings[0]).toContain('more than');
    await expectReported([], () => writeFileSync(`${root}/c/f`, 'x'));
  });

  test('pauses the watch on a directory with too many events, and reports the directory afterward', async () => {
    mkdirSync(`${root}/d`);
    set('/d/f', '/marker');
    const before = watch.size;
    for (let i = 0; i < 1200; i++) {
      writeFileSync(`${root}/d/noise`, 'x');
      unlinkSync(`${root}/d/noise`);
    }
    await expect.poll(() => watch.size, { interval: 5 }).toBe(before - 1);
    await expectReported([], () => writeFileSync(`${root}/d/f`, 'x'));
    clock.advance(30_000);
    await expect.poll(() => [...reported]).toEqual(['/d/f']);
    expect(watch.size).toBe(before);
    await expectReported(['/d/f'], () => writeFileSync(`${root}/d/f`, 'y'));
  });
});
