import { lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { scratchDirectory } from '../../test/scratch.ts';
import { ConfigError } from '../config/faults.ts';
import { replaceable } from './replaceable.ts';
import { runOffline } from './run.ts';

const folder = scratchDirectory('muster-replaceable-');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);

test('accepts a file, a link to a file, and a path that does not exist', async () => {
  writeFileSync(at('file'), '');
  symlinkSync(at('file'), at('link to file'));
  expect(await replaceable(at('file'))).toBe(at('file'));
  expect(await replaceable(at('link to file'))).toBe(at('file'));
  expect(await replaceable(at('free'))).toBe(at('free'));
});

test('refuses a path that is not a file, in all commands that write a file', async () => {
  mkdirSync(at('directory'));
  symlinkSync(at('nowhere'), at('dangling'));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(at('socket'), resolve));
  symlinkSync(at('socket'), at('link'));
  try {
    for (const name of ['directory', 'dangling', 'socket', 'link'])
      await expect(replaceable(at(name)), name).rejects.toThrow(ConfigError);
    // The database does not exist, so the commands must check the output path before they open the database.
    for (const command of ['backup', 'export'])
      expect(await runOffline(command, ['--data-dir', folder, at('link')], folder), command).toBe(2);
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true);
  } finally {
    server.close();
  }
});
