import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-cached-'));
  copyFileSync(join(import.meta.dirname, 'start-cached.cjs'), join(folder, 'it-cached.cjs'));
  writeFileSync(
    join(folder, 'it.cjs'),
    `const called = () => require('node:path').basename(__filename) + ' ' + process.argv.slice(2).join(' ');
     console.log(called());
     if (process.argv[2] === 'stack') throw new Error('wrong');
     if (process.argv[2] === 'more') console.log(require('./it-rest.cjs').more());
     process.exitCode = process.argv[2] === 'fail' ? 3 : 0;`,
  );
  writeFileSync(join(folder, 'it-rest.cjs'), "module.exports={more(){return 'the rest of ' + __filename}};");
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(folder, 'it-cached.cjs'), ...args], { encoding: 'utf8' });
const caches = () => readdirSync(folder).filter((name) => !name.endsWith('.cjs'));

test('stores one code cache per first argument, and reuses it', () => {
  expect(run('status', '--all')).toMatchObject({ status: 0, stdout: 'it.cjs status --all\n', stderr: '' });
  expect(run('/a/path').stdout).toBe('it.cjs /a/path\n');
  expect(run().stdout).toBe('it.cjs \n');
  expect(caches().sort()).toEqual(['it..cache', 'it.status.cache']);
  const { ino } = statSync(join(folder, 'it.status.cache'));
  expect(run('status', '--all').stdout).toBe('it.cjs status --all\n');
  expect(statSync(join(folder, 'it.status.cache')).ino).toBe(ino);
  expect(readFileSync(join(folder, 'it.status.cache'), 'latin1')).toContain('basename');
});

test('stores the code cache of the rest of a program separately', () => {
  const expected = `it.cjs more\nthe rest of ${join(folder, 'it-rest.cjs')}\n`;
  expect(run('more')).toMatchObject({ status: 0, stdout: expected, stderr: '' });
  expect(caches().sort()).toEqual(['it-rest.more.cache', 'it.more.cache']);
  expect(run('more').stdout).toBe(expected);
  expect(run('status').status).toBe(0);
  expect(caches()).not.toContain('it-rest.status.cache');
});

test('replaces a code cache that V8 rejects', () => {
  writeFileSync(join(folder, 'it.status.cache'), 'from another version');
  expect(run('status')).toMatchObject({ status: 0, stdout: 'it.cjs status\n', stderr: '' });
  expect(statSync(join(folder, 'it.status.cache')).size).toBeGreaterThan(100);
  expect(caches()).toEqual(['it.status.cache']);
});

test('stores no code cache after a failed start', () => {
  expect(run('fail').status).toBe(3);
  expect(caches()).toEqual([]);
});

test('preserves the line and column numbers of stack traces', () => {
  expect(run('stack').stderr).toContain(`${join(folder, 'it.cjs')}:3`);
  writeFileSync(join(folder, 'it.cjs'), "console.log(new Error('here').stack.split('\\n')[1])");
  expect(run().stdout).toContain(`${join(folder, 'it.cjs')}:1:13`);
});

test('bundles the database writer threads without Zod schemas', () => {
  for (const thread of ['sqlite-writer', 'samples-sqlite-writer'])
    expect(readFileSync(join(inject('bundles'), `${thread}.cjs`), 'utf8')).not.toContain('ZodType');
});
