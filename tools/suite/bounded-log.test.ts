import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { BoundedLog } from './bounded-log.ts';

const scratch = mkdtempSync(join(tmpdir(), 'muster-log-'));
afterAll(() => rmSync(scratch, { recursive: true }));

test('keeps the newest lines in order, in two files of limited size', async () => {
  const path = join(scratch, 'it.log');
  const log = new BoundedLog(path, 1000);
  log.write('0'.padStart(99, ' '));
  // A log does not rotate a file that is not open yet.
  await vi.waitFor(() => expect(statSync(path).size).toBe(100), { interval: 1 });
  for (let i = 1; i < 55; i++) log.write(String(i).padStart(99, ' '));
  await vi.waitFor(() => expect(statSync(`${path}.1`).size).toBeGreaterThanOrEqual(1000), { interval: 1 });
  for (let i = 55; i < 75; i++) {
    log.write(String(i).padStart(99, ' '));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise<void>((resolve) => log.end(resolve));
  const lines = [`${path}.1`, path].flatMap((file) => readFileSync(file, 'utf8').trim().split(/\n */).map(Number));
  expect(lines.at(-1)).toBe(74);
  expect(lines.length).toBeGreaterThanOrEqual(10);
  expect(lines).toEqual(lines.map((_, index) => 75 - lines.length + index));
  for (const file of [path, `${path}.1`]) expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('does not throw if the file cannot be written', async () => {
  const log = new BoundedLog(join(scratch, 'nowhere/it.log'), 10);
  for (let i = 0; i < 5; i++) log.write('a line');
  await vi.waitFor(() => log.write('another'));
});
