import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { readTextFile, watchFile } from './watch-file.ts';

let dir: string;
let path: string;
let clock: ManualClock;
let watch: ReturnType<typeof watchFile>;
let seen: (string | null)[];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-watch-'));
  path = join(dir, 'agent.yaml');
  await writeFile(path, 'a');
  clock = new ManualClock();
  seen = [];
  watch = watchFile(path, 'a', clock, (text) => seen.push(text));
});
afterEach(async () => {
  watch.end();
  await rm(dir, { recursive: true, force: true });
});

/** Processes events and advances the time until this many changes are reported. */
async function changes(count: number): Promise<void> {
  while (seen.length < count) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    clock.advance(100);
  }
}

describe('watching a file', () => {
  test('reports the watched file immediately on request, changed or not', async () => {
    await watch.again();
    expect(seen).toEqual(['a']);
    await writeFile(path, 'b');
    await watch.again();
    expect(seen).toEqual(['a', 'b']);
  });

  test('reports each replacement of the watched file', async () => {
    for (const [n, text] of ['b', 'c', 'd'].entries()) {
      await writeFile(join(dir, 'new'), text);
      await rename(join(dir, 'new'), path);
      await changes(n + 1);
    }
    expect(seen).toEqual(['b', 'c', 'd']);
  });

  test('reports when the watched file is removed or created, but not unchanged text', async () => {
    await writeFile(path, 'a');
    await rm(path);
    await changes(1);
    await writeFile(path, 'a');
    await changes(2);
    expect(seen).toEqual([null, 'a']);
  });

  test('finds the watched file with a rescan after its directory is replaced', async () => {
    await rename(dir, `${dir}-old`);
    const { mkdir } = await import('node:fs/promises');
    await mkdir(dir);
    await writeFile(path, 'elsewhere');
    clock.advance(30_000);
    await changes(1);
    expect(seen).toEqual(['elsewhere']);
    await writeFile(path, 'again');
    await changes(2);
    await rm(`${dir}-old`, { recursive: true });
  });

  test('names an unreadable file in the error', async () => {
    await expect(readTextFile(join(dir, 'none'))).rejects.toThrow(`${join(dir, 'none')} could not be read: ENOENT`);
  });
});
