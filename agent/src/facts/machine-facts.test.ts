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

const put = (name: string, text: string | Buffer, mode = 0o644): void =>
  writeFileSync(`${root}/facts.d/${name}`, text, { mode });
const start = async (): Promise<void> => {
  await facts.gather();
  facts.follow(() => changes++);
};

test('what is added, changed and removed is seen soon, in a directory that was not there at first too', async () => {
  await start();
  expect(facts.attributes).toMatchObject({ distro: 'debian', timezone: 'Europe/Paris' });
  mkdirSync(`${root}/facts.d`);
  put('a.yaml', 'rack: 1\n');
  await expect.poll(() => facts.attributes.rack).toBe('1');
  put('a.yaml', 'rack: 2\n');
  await expect.poll(() => facts.attributes.rack).toBe('2');
  rmSync(`${root}/facts.d/a.yaml`);
  await expect.poll(() => facts.attributes.rack).toBeUndefined();
  expect(changes).toBe(3);
});

test('the zone and the release of the system are, however they are replaced', async () => {
  await start();
  symlinkSync('/usr/share/zoneinfo/Asia/Tokyo', `${root}/etc/new`);
  renameSync(`${root}/etc/new`, `${root}/etc/localtime`);
  await expect.poll(() => facts.attributes.timezone).toBe('Asia/Tokyo');
  writeFileSync(`${root}/etc/new`, 'ID=devuan\n');
  renameSync(`${root}/etc/new`, `${root}/etc/os-release`);
  await expect.poll(() => facts.attributes.distro).toBe('devuan');
});

test('a program that writes beside itself is not run again for that, and another change is seen all the same', async () => {
  mkdirSync(`${root}/facts.d`);
  const runs = (): number => readFileSync(`${root}/facts.d/runs`, 'utf8').length;
  put('p', `#!/bin/sh\nprintf x >> ${root}/facts.d/runs\necho "n: $(wc -c < ${root}/facts.d/runs)"\n`, 0o755);
  await start();
  expect(runs()).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(runs()).toBe(1);
  put('b.yaml', 'b: 1\n');
  await expect.poll(() => facts.attributes.b).toBe('1');
  expect(runs()).toBe(2);
});

test('a slow program that writes beside itself is asked ever later, not for ever again', async () => {
  mkdirSync(`${root}/facts.d`);
  const runs = (): number => readFileSync(`${root}/facts.d/runs`, 'utf8').length;
  put('p', `#!/bin/sh\nprintf x >> ${root}/facts.d/runs\nsleep 0.6\necho n: 1\n`, 0o755);
  await start();
  facts.look();
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  // Without a pause it would have been asked six times by now; with 1 s and then 2 s in between it is three times.
  expect(runs()).toBeLessThan(5);
  await expect.poll(runs).toBeGreaterThan(1);
});

test('what of the system changes while a program is asked is seen all the same', async () => {
  mkdirSync(`${root}/facts.d`);
  symlinkSync('/usr/share/zoneinfo/Asia/Tokyo', `${root}/etc/new`);
  put(
    'p',
    `#!/bin/sh\nsleep 0.2\nmv ${root}/etc/new ${root}/etc/localtime 2> /dev/null\nsleep 0.3\necho n: 1\n`,
    0o755,
  );
  await facts.gather();
  facts.follow(() => changes++);
  await expect.poll(() => facts.attributes).toMatchObject({ n: '1', timezone: 'Asia/Tokyo' });
});

test('what is wrong is said once, again once it was right in between, and keeps nothing else out', async () => {
  mkdirSync(`${root}/facts.d`);
  put('a.yaml', 'platform: plan9\nok: 1\n');
  put('b.yaml', Buffer.from([0x61, 0x3a, 0x20, 0xff, 0x0a]));
  put('c.yaml', `c: ${'x'.repeat(300 * 1024)}\n`);
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
  put('c.yaml', `c: ${'x'.repeat(300 * 1024)}\n`);
  await facts.gather();
  expect(warned).toHaveLength(4);
});

test('are looked at when somebody asks, one look at a time', async () => {
  mkdirSync(`${root}/facts.d`);
  put('p', `#!/bin/sh\nprintf x >> ${root}/runs\necho "n: $(wc -c < ${root}/runs)"\n`, 0o755);
  await start();
  for (let i = 0; i < 5; i++) facts.look();
  await expect.poll(() => facts.attributes.n).toBe('3');
  appendFileSync(`${root}/runs`, 'x');
  facts.look();
  await expect.poll(() => facts.attributes.n).toBe('5');
  expect(changes).toBe(3);
});
