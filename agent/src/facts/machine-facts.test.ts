import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { MachineFacts } from './machine-facts.ts';

let root: string;
let facts: MachineFacts;
let changes: number;
let warned: string[];

beforeEach(() => {
  root = mkdtempSync(`${tmpdir()}/muster-facts-`);
  mkdirSync(`${root}/etc`);
  writeFileSync(`${root}/etc/os-release`, 'ID=debian\n');
  symlinkSync('/usr/share/zoneinfo/Europe/Paris', `${root}/etc/localtime`);
  changes = 0;
  warned = [];
  const log = { debug() {}, warn: (fields: object) => void warned.push(JSON.stringify(fields)) };
  facts = new MachineFacts({ factsDir: `${root}/facts.d`, hostname: null, clock: systemClock, log, root });
});
afterEach(() => {
  facts.end();
  rmSync(root, { recursive: true, force: true });
});

const writeFact = (name: string, text: string | Buffer, mode = 0o644): void =>
  writeFileSync(`${root}/facts.d/${name}`, text, { mode });
const start = async (): Promise<void> => {
  await facts.gather();
  facts.follow(() => changes++);
};

test('detects changed facts within seconds, even in a directory that is created later', async () => {
  await start();
  expect(facts.attributes).toMatchObject({ distro: 'debian', timezone: 'Europe/Paris' });
  mkdirSync(`${root}/facts.d`);
  writeFact('a.yaml', 'rack: 1\n');
  await expect.poll(() => facts.attributes.rack).toBe('1');
  writeFact('a.yaml', 'rack: 2\n');
  await expect.poll(() => facts.attributes.rack).toBe('2');
  rmSync(`${root}/facts.d/a.yaml`);
  await expect.poll(() => facts.attributes.rack).toBeUndefined();
  expect(changes).toBe(3);
});

test('detects a new time zone and a new operating system release', async () => {
  await start();
  symlinkSync('/usr/share/zoneinfo/Asia/Tokyo', `${root}/etc/new`);
  renameSync(`${root}/etc/new`, `${root}/etc/localtime`);
  await expect.poll(() => facts.attributes.timezone).toBe('Asia/Tokyo');
  writeFileSync(`${root}/etc/new`, 'ID=devuan\n');
  renameSync(`${root}/etc/new`, `${root}/etc/os-release`);
  await expect.poll(() => facts.attributes.distro).toBe('devuan');
});

test('does not rerun a program because of the program’s own writes', async () => {
  mkdirSync(`${root}/facts.d`);
  const runs = (): number => readFileSync(`${root}/facts.d/runs`, 'utf8').length;
  writeFact('p', `#!/bin/sh\nprintf x >> ${root}/facts.d/runs\necho "n: $(wc -c < ${root}/facts.d/runs)"\n`, 0o755);
  await start();
  expect(runs()).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(runs()).toBe(1);
  writeFact('b.yaml', 'b: 1\n');
  await expect.poll(() => facts.attributes.b).toBe('1');
  expect(runs()).toBe(2);
});

test('reruns a slow program that writes to its own directory at increasing intervals', async () => {
  mkdirSync(`${root}/facts.d`);
  const runs = (): number => readFileSync(`${root}/facts.d/runs`, 'utf8').length;
  writeFact('p', `#!/bin/sh\nprintf x >> ${root}/facts.d/runs\nsleep 0.6\necho n: 1\n`, 0o755);
  await start();
  facts.refresh();
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  // Without delays, the program would run six times. With delays of 1 s and 2 s, it runs three times.
  expect(runs()).toBeLessThan(5);
  await expect.poll(runs).toBeGreaterThan(1);
});

test('detects system changes that happen while a program is running', async () => {
  mkdirSync(`${root}/facts.d`);
  symlinkSync('/usr/share/zoneinfo/Asia/Tokyo', `${root}/etc/new`);
  writeFact(
    'p',
    `#!/bin/sh\nsleep 0.2\nmv ${root}/etc/new ${root}/etc/localtime 2> /dev/null\nsleep 0.3\necho n: 1\n`,
    0o755,
  );
  await facts.gather();
  facts.follow(() => changes++);
  await expect.poll(() => facts.attributes).toMatchObject({ n: '1', timezone: 'Asia/Tokyo' });
});

test('logs a problem once, and again if it recurs', async () => {
  mkdirSync(`${root}/facts.d`);
  writeFact('a.yaml', 'platform: plan9\nok: 1\n');
  writeFact('b.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xff, 0x0a]));
  writeFact('c.yaml', `c: ${'x'.repeat(300 * 1024)}\n`);
  await facts.gather();
  await facts.gather();
  expect(facts.attributes).toMatchObject({ platform: 'linux', ok: '1' });
  expect(Object.keys(facts.attributes)).not.toContain('a');
  expect(warned.map((line) => line.replace(root, '')).sort()).toEqual([
    expect.stringMatching(/platform is a built-in attribute/),
    expect.stringMatching(/b\.yaml.*not UTF-8/),
    expect.stringMatching(/c\.yaml.*larger than/),
  ]);
  rmSync(`${root}/facts.d/c.yaml`);
  await facts.gather();
  writeFact('c.yaml', `c: ${'x'.repeat(300 * 1024)}\n`);
  await facts.gather();
  expect(warned).toHaveLength(4);
});

test('collects attributes on request, one collection at a time', async () => {
  mkdirSync(`${root}/facts.d`);
  writeFact('p', `#!/bin/sh\nprintf x >> ${root}/runs\necho "n: $(wc -c < ${root}/runs)"\n`, 0o755);
  await start();
  for (let i = 0; i < 5; i++) facts.refresh();
  await expect.poll(() => facts.attributes.n).toBe('3');
  appendFileSync(`${root}/runs`, 'x');
  facts.refresh();
  await expect.poll(() => facts.attributes.n).toBe('5');
  expect(changes).toBe(3);
});
