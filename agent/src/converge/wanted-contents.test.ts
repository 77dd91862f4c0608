import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { limits } from '@muster/protocol/wire';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { ContentCache } from '../journal/content-cache.ts';
import { type ContentPart, WantedContents } from './wanted-contents.ts';

let directory: string;
let clock: ManualClock;
let wanted: WantedContents;
let notified: number;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-wanted-`);
  clock = new ManualClock();
  notified = 0;
  const cache = new ContentCache(directory, clock);
  wanted = new WantedContents(
    () => cache,
    clock,
    () => notified++,
  );
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const large = randomBytes(2 * limits.contentWindowBytes + 100);
const referenceOf = (bytes: Uint8Array) => ({ sha256: hash('sha256', bytes, 'hex'), size: bytes.length });
const use = (bytes: Uint8Array, operation = 'op1') =>
  wanted.use(operation, referenceOf(bytes), async ({ read }) => read());
const parts = () => {
  const all: ContentPart[] = [];
  for (let part = wanted.next(); part !== null; part = wanted.next()) all.push(part);
  return all;
};
const answer = ({ request, from, bytes }: ContentPart, content: Uint8Array = large) =>
  wanted.received(request, content.subarray(from, from + bytes));
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: Error) => error.message,
  );

test('requests content in parts within the flow-control window, and reads it once all parts have arrived', async () => {
  const reading = use(large);
  expect(notified).toBe(1);
  let requested = 0;
  for (;;) {
    const next = parts();
    if (next.length === 0) break;
    const bytes = next.reduce((sum, part) => sum + part.bytes, 0);
    expect(bytes).toBeLessThanOrEqual(limits.contentWindowBytes);
    requested += bytes;
    for (const part of next) expect(answer(part)).toBe(true);
  }
  expect(requested).toBe(large.length);
  expect(await reading).toEqual(large);
  expect(await use(large)).toEqual(large);
  expect(parts()).toEqual([]);
});

test('continues where the last link left off', async () => {
  const reading = use(large);
  const [first, second] = parts();
  answer(first!);
  wanted.received(second!.request, large.subarray(second!.from, second!.from + 10));
  wanted.unlinked();
  const again = parts();
  expect(again[0]).toMatchObject({ from: second!.from + 10, bytes: second!.bytes - 10 });
  // A response to a request on the previous link.
  expect(answer(second!)).toBe(false);
  for (let next = again; next.length > 0; next = parts()) for (const part of next) answer(part);
  expect(await reading).toEqual(large);
});

test('requests several contents at the same time, one of them for two operations', async () => {
  const contents = [Buffer.from('one'), Buffer.from('two')];
  const reading = Promise.all([use(contents[0]!), use(contents[1]!), use(contents[1]!, 'op2')]);
  const requested = parts();
  expect(requested.map(({ bytes, operation_id }) => [bytes, operation_id])).toEqual([
    [3, 'op1'],
    [3, 'op1'],
  ]);
  for (const [i, part] of requested.entries()) answer(part, contents[i]);
  expect((await reading).map(String)).toEqual(['one', 'two', 'two']);
});

test('requests content again if its hash differs, and fails if it differs again', async () => {
  const reading = failure(use(Buffer.from('right')));
  answer(parts()[0]!, Buffer.from('wrong'));
  while (notified < 2) await new Promise((resolve) => setImmediate(resolve));
  answer(parts()[0]!, Buffer.from('wrong'));
  expect(await reading).toMatch(/cannot fetch the content sha256:[0-9a-f]{64} \(5 bytes\): .*different hash/);
  expect(readdirSync(directory)).toEqual([]);
});

test('accepts only responses to the oldest request', () => {
  void use(large).catch(() => {});
  const [first, second] = parts();
  expect(answer(second!)).toBe(false);
  expect(wanted.refused(second!.request, 'no')).toBe(false);
  expect(wanted.received(first!.request, new Uint8Array(first!.bytes + 1))).toBe(false);
  expect(answer(first!)).toBe(true);
});

test('fails if the orchestrator refuses, if nothing arrives, or if the operation is canceled', async () => {
  const refused = failure(use(Buffer.from('refused')));
  wanted.refused(parts()[0]!.request, 'not yours');
  expect(await refused).toContain('not yours');
  const stalled = failure(use(Buffer.from('stalled')));
  clock.advance(10 * 60_000 - 1);
  clock.advance(1);
  expect(await stalled).toContain('nothing arrived for 10 minutes');
  const cancelled = failure(use(large, 'op1'));
  const other = use(large, 'op2');
  wanted.cancel('op1');
  expect(await cancelled).toContain('canceled');
  wanted.unlinked();
  for (let next = parts(); next.length > 0; next = parts()) for (const part of next) answer(part);
  expect(await other).toEqual(large);
});

test('ends all waits when the agent stops', async () => {
  const waiting = failure(use(large));
  wanted.stop(new Error('stopped'));
  expect(await waiting).toBe('stopped');
  expect(await failure(use(large))).toBe('stopped');
});
