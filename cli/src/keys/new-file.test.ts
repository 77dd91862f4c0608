import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliError } from '../exit.ts';
import { writeNewFile } from './new-file.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-new-file-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

test('replaces a file, even behind a link, only after the new content is complete', async () => {
  const path = join(folder, 'kept');
  await writeFile(path, 'before', { mode: 0o644 });
  await symlink(path, join(folder, 'link'));
  expect(await writeNewFile(join(folder, 'link'), pieces('af', 'ter'))).toBe(5);
  expect(await readFile(path, 'utf8')).toBe('after');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await lstat(join(folder, 'link'))).isSymbolicLink()).toBe(true);
  async function* broken() {
    yield Buffer.from('half');
    throw new Error('cut off');
  }
  await expect(writeNewFile(path, broken())).rejects.toThrow('cut off');
  expect(await readFile(path, 'utf8')).toBe('after');
  expect((await readdir(folder)).sort()).toEqual(['kept', 'link']);
  await expect(writeNewFile(join(folder, 'nowhere', 'x'), pieces('x'))).rejects.toThrow(
    `cannot write ${join(folder, 'nowhere', 'x')}: no such directory`,
  );
});

test('refuses directories and dangling links, and leaves them unchanged', async () => {
  await mkdir(join(folder, 'directory'));
  await symlink(join(folder, 'nowhere'), join(folder, 'dangling'));
  const socket = join(folder, 'socket');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  await symlink(socket, join(folder, 'link'));
  try {
    for (const name of ['directory', 'dangling', 'socket', 'link']) {
      const path = join(folder, name);
      const before = await lstat(path);
      const refused = await writeNewFile(path, pieces('x')).catch((error: unknown) => error);
      expect(refused, name).toBeInstanceOf(CliError);
      expect(refused).toMatchObject({ exit: 2, message: expect.stringContaining(path) });
      expect((await lstat(path)).ino).toBe(before.ino);
    }
  } finally {
    server.close();
  }
});
