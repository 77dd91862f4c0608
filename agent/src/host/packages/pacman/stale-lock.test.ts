import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { removeStaleLock } from './stale-lock.ts';

let directory: string;
let lock: string;
let holder: ChildProcess | null = null;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-lock-'));
  mkdirSync(join(directory, 'real'));
  symlinkSync('real', join(directory, 'pacman'));
  lock = join(directory, 'pacman/db.lck');
});
afterEach(() => {
  holder?.kill('SIGKILL');
  holder = null;
  rmSync(directory, { recursive: true });
});

/** Creates the lock as pacman does. */
const leave = () => {
  writeFileSync(lock, '');
  chmodSync(lock, 0);
};

test('removes a lock that no process holds', () => {
  removeStaleLock(lock);
  leave();
  removeStaleLock(lock);
  expect(existsSync(lock)).toBe(false);
});

test('keeps a lock that a process holds, also if its path contains a link', async () => {
  holder = spawn('sh', ['-c', 'umask 777; exec 3> "$0"; echo; exec sleep 1000', lock], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout as NonNullable<typeof holder.stdout>, 'data');
  removeStaleLock(lock);
  expect(existsSync(lock)).toBe(true);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  removeStaleLock(lock);
  expect(existsSync(lock)).toBe(false);
});

test('keeps a lock that another process took in the meantime', () => {
  leave();
  removeStaleLock(lock, () => {
    rmSync(lock);
    leave();
    return false;
  });
  expect(existsSync(lock)).toBe(true);
});

test('keeps a file that pacman did not create', () => {
  writeFileSync(lock, '');
  removeStaleLock(lock);
  expect(existsSync(lock)).toBe(true);
  rmSync(lock);
  symlinkSync('elsewhere', lock);
  removeStaleLock(lock);
  expect(existsSync(join(directory, 'pacman'))).toBe(true);
});
