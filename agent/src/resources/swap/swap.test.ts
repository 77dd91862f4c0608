import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseModule, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { makeSwapFile, parseSwaps, readSwapFile, refusedFileSystem } from '../../host/swap.ts';
import { splitText } from '../text-edit/lines.ts';
import { placedLine } from '../text-edit/placed-lines.ts';
import { diffSwap, diffSwapRemoval } from './diff.ts';
import { type Declared, declaredEntry, type SeenSwap, type SwapBefore } from './seen.ts';

const path = '/swapfile';
const declared = (body: Partial<ResourceBodies['swap']> = {}) =>
  ({ type: 'swap', identity: path, sensitive_fields: [], body: { path, size: '1G', ...body } }) as unknown as Declared;
const file = {
  ...{ size: 1024 ** 3, uid: 0, gid: 0, mode: 0o600, hasHoles: false },
  ...{ uuid: '01234567-0123-0123-0123-0123456789ab', label: '' },
};
const linesOf = (text: string) => {
  const lines = splitText(text);
  return lines.map((_, index) => placedLine(lines, index));
};
const line = `${path} none swap sw 0 0\n`;
const seen = (fields: Partial<SeenSwap> = {}): SeenSwap => ({
  ...{ found: 'swap', file, refused: null, hasRoom: true, missing: null, live: -2, lines: linesOf(line) },
  fstab: { type: 'file', kind: null, ownership: { uid: 0, gid: 0, mode: 0o644 } },
  ...fields,
});
const absent = { found: 'absent' as const, file: null, live: null, lines: [] };
const apply = { purpose: 'apply' as const };
const diff = (body: Partial<ResourceBodies['swap']>, now: Partial<SeenSwap>) =>
  diffSwap(declared(body), seen(now), apply);
const fields = ({ changes }: { changes: { field: string }[] }) => changes.map(({ field }) => field);

test('reports the file, its line, and its use separately', () => {
  expect(diff({}, {}).action).toBe('none');
  expect(diff({}, absent)).toMatchObject({
    action: 'create',
    changes: [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'size', from: null, to: '1G' },
      { field: 'line', from: 'absent', to: 'present' },
      { field: 'options', from: null, to: 'sw' },
      { field: 'active', from: 'no', to: 'yes' },
    ],
  });
  expect(diff({ size: '512M' }, {}).changes).toEqual([{ field: 'size', from: '1G', to: '512M' }]);
  expect(diff({}, { file: { ...file, mode: 0o644, uid: 7 } }).changes).toEqual([
    { field: 'owner', from: '7:0', to: '0:0' },
    { field: 'mode', from: '0644', to: '0600' },
  ]);
  expect(fields(diff({ priority: 3 }, {}))).toEqual(['options', 'live_priority']);
  expect(diff({}, { live: null }).changes).toEqual([{ field: 'active', from: 'no', to: 'yes' }]);
  expect(diff({}, { lines: linesOf(line + line) }).changes).toEqual([{ field: 'lines', from: '2', to: '1' }]);
  expect(fields(diff({ ensure: 'absent' }, {}))).toEqual(['ensure', 'size', 'line', 'options', 'active']);
  expect(diff({ ensure: 'absent' }, absent).action).toBe('none');
});

test('keeps the undeclared options of a line, and the order of the options', () => {
  const optionsOf = (body: Partial<ResourceBodies['swap']>, options: string) =>
    declaredEntry(declared(body), [{ text: `${path} swap swap ${options}` }])?.options;
  expect(optionsOf({}, 'pri=3,discard')).toBe('pri=3,discard');
  expect(optionsOf({ priority: 3 }, 'pri=3,discard')).toBe('pri=3,discard');
  expect(optionsOf({ priority: 4 }, 'pri=3,discard')).toBe('discard,pri=4');
  expect(optionsOf({ options: 'nofail' }, 'pri=3,discard')).toBe('nofail,pri=3');
});

test('refuses file systems that do not support swap files, files with holes, other files, and a full disk', () => {
  expect(() => diff({}, { ...absent, refused: 'btrfs' })).toThrow('/swapfile is on btrfs, which copies blocks');
  expect(() => diff({}, { ...absent, refused: 'tmpfs' })).toThrow('/swapfile is on tmpfs, where the kernel cannot use');
  expect(() => diff({}, { file: { ...file, hasHoles: true }, live: null })).toThrow('/swapfile has holes');
  expect(() => diff({}, { ...absent, found: 'other' })).toThrow('is not a swap file');
  expect(() => diff({}, { ...absent, hasRoom: false })).toThrow('too little free space for 1G');
  // An administrator created a swap file there, and the kernel uses it.
  expect(diff({}, { refused: 'btrfs', file: { ...file, hasHoles: true } }).action).toBe('none');
  const drift = { purpose: 'drift' as const };
  expect(diffSwap(declared(), seen({ ...absent, found: 'other' }), drift).changes).toMatchObject([{ field: 'type' }]);
  expect(diffSwap(declared(), seen({ refused: 'btrfs' }), drift).action).toBe('none');
  const before: SwapBefore = { file: null, lines: { was: 'absent', made: false }, live: null };
  expect(() => diffSwapRemoval(declared(), before, seen({ ...absent, found: 'other' }))).toThrow(
    'no longer a swap file',
  );
});

test('restores the previous file, line, and priority', () => {
  const { hasHoles: _, ...former } = file;
  const before: SwapBefore = {
    file: { ...former, size: 1024 ** 2, mode: 0o644, uuid: 'other' },
    lines: { was: 'present', lines: linesOf(`${path} none swap pri=4\n`) },
    live: 4,
  };
  expect(fields(diffSwapRemoval(declared(), before, seen()))).toEqual([
    ...['size', 'mode', 'uuid', 'options', 'live_priority'],
  ]);
  const unused: SwapBefore = { file: former, lines: { was: 'present', lines: linesOf(line) }, live: null };
  expect(diffSwapRemoval(declared(), unused, seen()).changes).toEqual([{ field: 'active', from: 'yes', to: 'no' }]);
  expect(diffSwapRemoval(declared(), unused, seen({ live: null })).action).toBe('none');
  expect(diffSwapRemoval(declared(), { ...unused, live: -2 }, seen({ live: -3 })).action).toBe('none');
});

test('refuses sizes without a unit, devices, and a priority among the options', () => {
  const parse = (body: string) =>
    parseModule(`name: m\nsupports: [{ platform: linux }]\nresources:\n  - { id: a, resource: { swap: ${body} } }\n`);
  expect(parse('{ path: /swapfile, size: 1G, priority: 1, options: "discard" }')).toMatchObject({ ok: true });
  for (const [body, message] of [
    ['{ path: /swapfile }', 'size'],
    ['{ path: /swapfile, size: "1073741824" }', 'whole number with M, G, or T'],
    ['{ path: /dev/sda2, size: 1G }', 'not a device'],
    ['{ path: /swapfile, size: 1G, options: "discard,pri=3" }', 'declare `priority`'],
  ] as const)
    expect(JSON.stringify(parse(body))).toContain(message);
});

test('creates a swap file that only root can read, and reads its size, label, UUID, and holes', async () => {
  const folder = mkdtempSync(`${tmpdir()}/muster-swap-`);
  try {
    const runner = { clock: systemClock, startedProcess: () => {} };
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, mode: 0o600 };
    const wanted = { ...owner, size: 3 * 1024 ** 2, uuid: file.uuid, label: 'earlier' };
    await makeSwapFile(`${folder}/swap`, wanted, runner);
    expect(readSwapFile(`${folder}/swap`)).toEqual({ ...wanted, hasHoles: false });
    expect(statSync(`${folder}/swap`).mode & 0o777).toBe(0o600);
    truncateSync(`${folder}/swap`, 8 * 1024 ** 2);
    expect(readSwapFile(`${folder}/swap`)).toMatchObject({ size: wanted.size, hasHoles: true });
    writeFileSync(`${folder}/data`, Buffer.alloc(100_000));
    expect(readSwapFile(`${folder}/data`)).toBeNull();
    await expect(makeSwapFile(`${folder}/data`, wanted, runner)).rejects.toThrow('cannot create the swap file');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('reads the active swap files, and recognizes a file system that does not support swap files', () => {
  expect(parseSwaps('/swapfile -2\n/dev/sda2 10\n')).toEqual(
    new Map([
      ['/swapfile', -2],
      ['/dev/sda2', 10],
    ]),
  );
  expect(refusedFileSystem('/dev/shm')).toBe('tmpfs');
});
