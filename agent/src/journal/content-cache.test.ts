import { hash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ContentCache, maxCacheBytes } from './content-cache.ts';

let directory: string;
let now: number;
let cache: ContentCache;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-contents-`);
  now = 1_700_000_000_000;
  cache = new ContentCache(directory, { now: () => now });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const referenceOf = (bytes: Uint8Array) => ({ sha256: hash('sha256', bytes, 'hex'), size: bytes.length });
const names = () => readdirSync(directory).sort();

async function store(bytes: Uint8Array) {
  const reference = referenceOf(bytes);
  cache.begin(reference);
  cache.add(reference, 0, bytes);
  expect(await cache.complete(reference)).toBe(true);
  return reference;
}

test('stores content that arrives in parts, even across a restart', async () => {
  const bytes = Buffer.from('one two three');
  const reference = referenceOf(bytes);
  expect(cache.begin(reference)).toBe(0);
  cache.add(reference, 0, bytes.subarray(0, 5));
  expect(cache.has(reference)).toBe(false);
  cache.leave(reference);
  cache = new ContentCache(directory, { now: () => now });
  expect(cache.begin(reference)).toBe(5);
  cache.add(reference, 5, bytes.subarray(5));
  expect(await cache.complete(reference)).toBe(true);
  expect(cache.has(reference)).toBe(true);
  expect(await cache.stored(reference).read()).toEqual(bytes);
  expect(statSync(cache.stored(reference).path).mode & 0o777).toBe(0o600);
  expect(names()).toEqual([reference.sha256]);
});

test('deletes content with the wrong hash', async () => {
  const reference = referenceOf(Buffer.from('right'));
  cache.begin(reference);
  cache.add(reference, 0, Buffer.from('wrong'));
  expect(await cache.complete(reference)).toBe(false);
  expect(names()).toEqual([]);
  expect(cache.begin(reference)).toBe(0);
});

test('replaces a damaged file under its second name when its content is fetched again', async () => {
  const bytes = Buffer.from('a package');
  const reference = await store(bytes);
  const name = cache.stored(reference).named('.deb');
  truncateSync(name, 1);
  expect(cache.has(reference)).toBe(false);
  await store(bytes);
  expect(readFileSync(cache.stored(reference).named('.deb'))).toEqual(bytes);
});

test('starts over if more bytes arrive than the content has', () => {
  const reference = referenceOf(Buffer.from('short'));
  writeFileSync(`${directory}/${reference.sha256}.part`, 'much longer');
  expect(cache.begin(reference)).toBe(0);
});

test('keeps only contents that are needed or in use', async () => {
  const [kept, used, unused] = [
    await store(Buffer.from('a')),
    await store(Buffer.from('b')),
    await store(Buffer.from('c')),
  ];
  const release = cache.hold(used);
  cache.retain(new Set([kept.sha256]));
  expect(names()).toEqual([kept.sha256, used.sha256].sort());
  expect(cache.has(unused)).toBe(false);
  release();
  release();
  cache.retain(new Set([kept.sha256]));
  expect(names()).toEqual([kept.sha256]);
});

test('makes room by deleting the least recently used contents, but not those in use', async () => {
  const [oldest, used, newest] = [
    await store(Buffer.from('a')),
    await store(Buffer.from('b')),
    await store(Buffer.from('c')),
  ];
  for (const each of [oldest, used, newest]) {
    truncateSync(`${directory}/${each.sha256}`, maxCacheBytes / 4);
    now += 1000;
    cache.stored(each);
  }
  now += 1000;
  cache.stored(oldest);
  cache.hold(used);
  cache.makeRoom(maxCacheBytes / 4);
  expect(names()).toHaveLength(3);
  cache.makeRoom(maxCacheBytes / 4 + 1);
  expect(names()).toEqual([oldest.sha256, used.sha256].sort());
  cache.begin(referenceOf(Buffer.from('d')));
  expect(names()).toHaveLength(3);
});

test('gives content a second name, which is removed together with the content', async () => {
  const reference = await store(Buffer.from('a package'));
  const name = cache.stored(reference).named('.deb');
  expect(cache.stored(reference).named('.deb')).toBe(name);
  expect(readFileSync(name, 'utf8')).toBe('a package');
  expect(name.endsWith('.deb')).toBe(true);
  cache.retain(new Set([reference.sha256]));
  expect(names()).toEqual([reference.sha256, `${reference.sha256}.deb`]);
  cache.retain(new Set());
  expect(names()).toEqual([]);
});
