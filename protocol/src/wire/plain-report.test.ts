import { expect, test } from 'vitest';
import { agentMessageSchema } from './agent-message.ts';
import { isPlainReport } from './plain-report.ts';

const operation_id = '01KAGZ7R3E5F6G7H8J9K0M1N2P';
const result = {
  module: 'web',
  id: 'conf',
  type: 'file-unix',
  identity: '/etc/x',
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 0.5,
  sensitive: false,
};
const summary = { total: 1, unchanged: 1, changed: 0, removed: 0, failed: 0, skipped: 0 };
const finished = {
  type: 'finished',
  operation_id,
  status: 'succeeded',
  summary,
  error: null,
  started_at: 1,
  finished_at: 2,
};
const results = {
  type: 'results',
  operation_id,
  position: 0,
  results: [result, { ...result, id: null, message: 'no' }],
};
const message = { type: 'report', seq: 7, reports: [{ type: 'accepted', operation_id }, results, finished] };

test('recognizes the reports of an apply that changes nothing', () => {
  expect(isPlainReport(message)).toBe(true);
  expect(isPlainReport({ ...message, reports: [{ type: 'accepted', operation_id }] })).toBe(true);
});

/** Values that are valid for some field, barely invalid for it, or invalid for every field. */
const values: unknown[] = [
  ...[null, true, 0, -0, -1, 1, 0.5, 1e300, Number.POSITIVE_INFINITY, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 5_000_000],
  ...['', 'x', 'failed', 'skipped', 'none', 'report', 'finished', '\u0000', '\ud800', operation_id, `${operation_id}1`],
  ...[64, 65, 128, 129, 256, 257, 4096, 4097, 8192, 8193].map((length) => 'x'.repeat(length)),
  ...[[], {}, [null], [''], [result], [{ type: 'accepted', operation_id }], result, summary],
  ...[256, 257].map((length) => Array(length).fill(result)),
  ...[64, 65].map((length) => Array(length).fill({ type: 'accepted', operation_id })),
];
const keys = ['id', 'plan_digest', 'constructor', '__proto__', 'more'];

/** Yields every value that differs from `value` in one part: replaced, removed, added, or moved. */
function* variants(value: unknown): Generator<unknown> {
  yield* values;
  if (typeof value !== 'object' || value === null) return;
  const entries = Object.entries(value);
  const of = (changed: [string, unknown][]) =>
    Array.isArray(value) ? changed.map(([, element]) => element) : Object.fromEntries(changed);
  yield of(entries.toReversed());
  for (const [index, [key, part]] of entries.entries()) {
    yield of(entries.toSpliced(index, 1));
    for (const variant of variants(part)) yield of(entries.with(index, [key, variant]));
  }
  for (const key of keys) for (const added of values) yield of([...entries, [key, added]]);
}

test('accepts nothing that the schema refuses or changes', () => {
  let plain = 0;
  for (const variant of variants(message)) {
    if (!isPlainReport(variant)) continue;
    plain++;
    const parsed = agentMessageSchema.safeParse(variant);
    expect(parsed.error).toBeUndefined();
    // Equal JSON also means that the fields have the same order.
    expect(JSON.stringify(parsed.data)).toBe(JSON.stringify(variant));
  }
  expect(plain).toBeGreaterThan(100);
});
