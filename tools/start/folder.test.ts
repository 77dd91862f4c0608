import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'muster-folder-'));
afterAll(() => rmSync(scratch, { recursive: true }));

test('creates a folder and its parents for the owner only, and accepts existing folders', () => {
  const path = join(scratch, 'a', 'b');
  makeFolder(path);
  makeFolder(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test('throws for an impossible path instead of hanging', () => {
  writeFileSync(join(scratch, 'file'), '');
  expect(() => makeFolder(join(scratch, 'file'))).toThrow('is not a folder');
  expect(() => makeFolder(join(scratch, 'file', 'x'))).toThrow('is not a folder');
  if (process.platform === 'linux') expect(() => makeFolder('/proc/x/y')).toThrow('ENOENT');
});
