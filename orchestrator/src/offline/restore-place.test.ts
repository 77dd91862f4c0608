import { execFileSync } from 'node:child_process';
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
  isRestoring,
  markDatabase,
  RestoreBlocked,
  RestoreIncomplete,
} from './restore-place.ts';

/**
 * Verifies that the directory contains either the previous or the new content if a restore is interrupted at any step,
 * and that the next startup completes a restore that has begun to replace the content.
 */

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

async function startRestore() {
  const { content } = await beginRestore(directory);
  for (const name of ['muster.db', 'identity.key', 'api.crt']) writeFileSync(join(content, name), 'new');
  return content;
}
const aside = 'before-restore-20261120T000000Z';
function expectRestored() {
  expect(readdirSync(directory).sort()).toEqual(
    ['api.crt', aside, 'identity.key', 'muster.db', 'orchestrator-lock.1.2.3'].sort(),
  );
  expect(readFileSync(join(directory, 'muster.db'), 'utf8')).toBe('new');
  expect(readFileSync(join(directory, aside, 'muster.db'), 'utf8')).toBe('old');
}

describe('a restored data directory', () => {
  test('replaces the content of the directory, and moves the previous content aside', async () => {
    await startRestore();
    await completeRestore(directory, aside);
    expectRestored();
    expect(await contentOf(directory)).not.toContain(aside);
    expect(await finishRestore(directory)).toBe(false);
  });

  test('discards an incomplete restore, and keeps the previous content', async () => {
    await startRestore();
    await expect(finishRestore(directory)).rejects.toThrow(RestoreIncomplete);
    await expect(finishRestore(directory)).rejects.toThrow('run `muster restore` or `muster orchestrator join` again');
    expect((await contentOf(directory)).sort()).toEqual(['identity.key', 'muster.db']);
    await startRestore();
    await completeRestore(directory, aside);
    expectRestored();
  });

  test('prevents the orchestrator from starting after the database was committed, until the restore is complete', async () => {
    await startRestore();
    await markDatabase(directory, 'muster_before');
    // Makes the restore fail twice. The second failure must preserve the record of the committed database.
    for (const _ of [1, 2]) {
      await dropRestore(directory);
      await expect(finishRestore(directory)).rejects.toThrow(RestoreIncomplete);
      await expect(finishRestore(directory)).rejects.toThrow('with the same backup; the former data is in');
      await startRestore();
    }
    await markDatabase(directory, null);
    await completeRestore(directory, aside);
    expectRestored();
  });

  test.each([
    ['before anything was moved', []],
    ['while the former content was moved aside', ['muster.db']],
    ['after the former content was moved aside', ['muster.db', 'identity.key']],
  ])('completes a restore that was interrupted %s', async (_, moved) => {
    await startRestore();
    mkdirSync(join(directory, aside), { mode: 0o700 });
    for (const name of moved) renameSync(join(directory, name), join(directory, aside, name));
    writeFileSync(join(directory, '.restoring/whole'), aside);
    expect(await finishRestore(directory)).toBe(true);
    expectRestored();
  });

  test.each([1, 2, 4])(
    'completes a restore that was interrupted after it had moved %i of the new files',
    async (steps) => {
      const content = await startRestore();
      mkdirSync(join(directory, aside), { mode: 0o700 });
      for (const name of ['muster.db', 'identity.key']) renameSync(join(directory, name), join(directory, aside, name));
      writeFileSync(join(directory, '.restoring/cleared'), aside);
      for (const name of readdirSync(content).slice(0, steps)) renameSync(join(content, name), join(directory, name));
      expect(await finishRestore(directory)).toBe(true);
      expectRestored();
    },
  );

  test.each([
    ['before it removed its folder', ['cleared', 'content']],
    ['after it removed the folder for new content', ['cleared']],
    ['after it removed its marker', []],
  ])('finishes a restore that was interrupted %s', async (_, left) => {
    await startRestore();
    await completeRestore(directory, aside);
    mkdirSync(join(directory, '.restoring'));
    if (left.includes('cleared')) writeFileSync(join(directory, '.restoring/cleared'), aside);
    if (left.includes('content')) mkdirSync(join(directory, '.restoring/content'));
    await finishRestore(directory);
    expectRestored();
    expect(await isRestoring(directory)).toBe(false);
  });

  test('never discards complete content, whose move may have begun', async () => {
    const content = await startRestore();
    mkdirSync(join(directory, aside), { mode: 0o700 });
    renameSync(join(directory, 'muster.db'), join(directory, aside, 'muster.db'));
    writeFileSync(join(directory, '.restoring/whole'), aside);
    await dropRestore(directory);
    expect(readFileSync(join(content, 'muster.db'), 'utf8')).toBe('new');
    await finishRestore(directory);
    expectRestored();
  });

  /** Expects that an obstacle blocks the restore at each start, until it is removed. */
  async function expectBlockedBy(obstacle: string): Promise<void> {
    for (const _ of [1, 2]) {
      const failure = await finishRestore(directory).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(RestoreBlocked);
      expect((failure as Error).message).toContain(
        `${obstacle} exists: move it elsewhere, then start the orchestrator, which finishes the restore`,
      );
    }
    renameSync(obstacle, join(above, `elsewhere-${count}`));
    expect(await finishRestore(directory)).toBe(true);
    expect(readFileSync(join(directory, 'muster.db'), 'utf8')).toBe('new');
    expect(readFileSync(join(directory, aside, 'muster.db'), 'utf8')).toBe('old');
  }

  test('names what prevents it from moving the previous content, and finishes without that', async () => {
    await startRestore();
    mkdirSync(join(directory, 'terminals'));
    mkdirSync(join(directory, aside, 'terminals/x'), { recursive: true });
    writeFileSync(join(directory, '.restoring/whole'), aside);
    await expectBlockedBy(join(directory, aside, 'terminals'));
  });

  test('names what prevents it from moving the new content, and finishes without that', async () => {
    const content = await startRestore();
    mkdirSync(join(content, 'terminals'));
    mkdirSync(join(directory, aside));
    for (const name of ['muster.db', 'identity.key']) renameSync(join(directory, name), join(directory, aside, name));
    mkdirSync(join(directory, 'terminals/x'), { recursive: true });
    writeFileSync(join(directory, '.restoring/cleared'), aside);
    await expectBlockedBy(join(directory, 'terminals'));
  });

  test('refuses to begin if it has a mount point, and finishes after a later mount point is unmounted', () => {
    const script = `
      const place = await import('${new URL('./restore-place.ts', import.meta.url)}');
      const [directory, step] = process.argv.slice(1);
      const work = { begin: () => place.beginRestore(directory), finish: () => place.finishRestore(directory) };
      await work[step]().then((done) => console.log(done === true ? 'finished' : 'begun'), ({ message }) => console.log(message));`;
    const node = (step: string) => [process.execPath, '--input-type=module', '-e', script, directory, step];
    const terminals = join(directory, 'terminals');
    mkdirSync(terminals);
    const mounted = (mount: string, step: string) => {
      const line = `mount ${mount} ${terminals} && exec "$@"`;
      return execFileSync('unshare', ['-rm', 'sh', '-c', line, 'sh', ...node(step)], { encoding: 'utf8' }).trim();
    };
    mkdirSync(join(above, 'bound'), { recursive: true });
    const refused = `${terminals} is a mount point, so it cannot be moved aside; nothing was changed: unmount it, and try again`;
    for (const mount of ['-t tmpfs tmpfs', `--bind ${join(above, 'bound')}`]) {
      expect(mounted(mount, 'begin')).toBe(refused);
      expect(readdirSync(directory)).not.toContain('.restoring');
    }
    mkdirSync(join(directory, '.restoring/content'), { recursive: true });
    mkdirSync(join(directory, aside));
    for (const name of ['muster.db', 'identity.key', 'api.crt'])
      writeFileSync(join(directory, '.restoring/content', name), 'new');
    writeFileSync(join(directory, '.restoring/whole'), aside);
    expect(mounted('-t tmpfs tmpfs', 'finish')).toBe(
      `a restore cannot move ${terminals} to ${join(directory, aside, 'terminals')} (EBUSY): one of them is a mount point: unmount it, then start the orchestrator, which finishes the restore`,
    );
    const [program = '', ...args] = node('finish');
    expect(execFileSync(program, args, { encoding: 'utf8' }).trim()).toBe('finished');
    expectRestored();
  });
});
