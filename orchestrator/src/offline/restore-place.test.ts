import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { scratchDirectory } from '../../test/scratch.ts';
import {
  beginRestore,
  completeRestore,
  contentOf,
  dropRestore,
  finishRestore,
  goOnWithDatabase,
} from './restore-place.ts';

/** Cut off at each step, the directory is what it was or what it is to be; the next who comes by brings it there. */
const above = scratchDirectory('muster-restore-');
let directory = '';
let count = 0;
beforeEach(() => {
  directory = join(above, String(++count));
  mkdirSync(directory, { mode: 0o700 });
  for (const name of ['muster.db', 'identity.key']) writeFileSync(join(directory, name), 'old');
  writeFileSync(join(directory, 'orchestrator-lock.1.2.3'), '');
});
afterAll(() => rmSync(above, { recursive: true, force: true }));

async function begun() {
  const { content } = await beginRestore(directory);
  for (const name of ['muster.db', 'identity.key', 'api.crt']) writeFileSync(join(content, name), 'new');
  return content;
}
const aside = 'before-restore-20261120T000000Z';
function expectRestored() {
  expect(readdirSync(directory).sort()).toEqual(
    ['api.crt', aside, 'identity.key', 'muster.db', 'orchestrator-lock.1.2.3', 'terminals'].sort(),
  );
  expect(readFileSync(join(directory, 'muster.db'), 'utf8')).toBe('new');
  expect(readFileSync(join(directory, aside, 'muster.db'), 'utf8')).toBe('old');
}

describe('a data directory that is put back', () => {
  test('takes the place of what was there, which is kept', async () => {
    await begun();
    await completeRestore(directory, aside);
    expectRestored();
    expect(await contentOf(directory)).not.toContain(aside);
    expect(await finishRestore(directory)).toBe(false);
  });

  test('that was not whole is none: what was there is untouched, and nothing starts on it', async () => {
    await begun();
    await expect(finishRestore(directory)).rejects.toThrow('run `muster restore` again');
    expect((await contentOf(directory)).sort()).toEqual(['identity.key', 'muster.db']);
    await begun();
    await completeRestore(directory, aside);
    expectRestored();
  });

  test('whose database elsewhere is there already is not given up: nothing starts on the two until it is whole', async () => {
    await begun();
    await goOnWithDatabase(directory, 'muster_before');
    // It fails then, and another that fails does not take that back.
    for (const _ of [1, 2]) {
      await dropRestore(directory);
      await expect(finishRestore(directory)).rejects.toThrow('with the same backup; what was in the database is in');
      await begun();
    }
    await goOnWithDatabase(directory, null);
    await completeRestore(directory, aside);
    expectRestored();
  });

  test.each([
    ['before anything was moved', []],
    ['while what was there was moved away', ['muster.db']],
    ['when all of it was', ['muster.db', 'identity.key']],
  ])('that was cut off %s is brought to its end', async (_, moved) => {
    await begun();
    mkdirSync(join(directory, aside), { mode: 0o700 });
    for (const name of moved) renameSync(join(directory, name), join(directory, aside, name));
    writeFileSync(join(directory, '.restoring/whole'), aside);
    expect(await finishRestore(directory)).toBe(true);
    expectRestored();
  });

  test.each([1, 2, 4])('that was cut off after %i of what is new was moved in is brought to its end', async (steps) => {
    const content = await begun();
    mkdirSync(join(directory, aside), { mode: 0o700 });
    for (const name of ['muster.db', 'identity.key']) renameSync(join(directory, name), join(directory, aside, name));
    writeFileSync(join(directory, '.restoring/cleared'), aside);
    for (const name of readdirSync(content).slice(0, steps)) renameSync(join(content, name), join(directory, name));
    expect(await finishRestore(directory)).toBe(true);
    expectRestored();
  });
});
