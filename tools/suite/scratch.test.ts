import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openScratch } from './scratch.ts';

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'muster-scratch-'));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

test('removes a run’s files when the run finishes, and files of killed runs at the next start', () => {
  const left = join(parent, 'muster-run-4194304-77');
  mkdirSync(join(left, 'deep'), { recursive: true });
  writeFileSync(join(left, 'deep/file'), '');
  mkdirSync(join(parent, 'muster-runs'));
  const running = openScratch({ onDisk: parent, inMemory: parent });
  expect(existsSync(left)).toBe(process.platform !== 'linux');
  writeFileSync(join(running.inMemory, 'file'), '');
  openScratch({ onDisk: parent, inMemory: parent });
  expect(readdirSync(running.onDisk)).toEqual(['file']);
  running.remove();
  expect(readdirSync(parent).filter((name) => name !== 'muster-run-4194304-77')).toEqual(['muster-runs']);
});
