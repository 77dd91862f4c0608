import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'muster-folder-'));
afterAll(() => rmSync(scratch, { recursive: true }));

test('a folder is made with those above it, for its owner only, and found the next time', () => {
  const path = join(scratch, 'a', 'b');
  makeFolder(path);
  makeFolder(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test('an impossible path gives an error and does not hang', () => {
  writeFileSync(join(scratch, 'file'), '');
  expect(() => makeFolder(join(scratch, 'file'))).toThrow('is not a folder');
  expect(() => makeFolder(join(scratch, 'file', 'x'))).toThrow('is not a folder');
  if (process.platform === 'linux') expect(() => makeFolder('/proc/x/y')).toThrow('ENOENT');
});
