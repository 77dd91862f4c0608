import fc from 'fast-check';
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

/** Values that fit some field, just fail to fit it, or fit none. */
const values: unknown[] = [
  ...[null, true, 0, -0, -1, 1, 0.5, 1e300, Number.POSITIVE_INFINITY, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 5_000_000],
  ...['', 'x', 'failed', 'skipped', 'none', 'report', 'finished', '\u0000', '\ud800', operation_id, `${operation_id}1`],
  ...[64, 65, 128, 129, 256, 257, 4096, 4097, 8192, 8193].map((length) => 'x'.repeat(length)),
  ...[[], {}, [null], [''], [result], [{ type: 'accepted', operation_id }], result, summary],
  ...[256, 257].map((length) => Array(length).fill(result)),
  ...[64, 65].map((length) => Array(length).fill({ type: 'accepted', operation_id })),
];
const keys = [
  'type',
  'seq',
  'operation_id',
  'position',
  'id',
  'diff',
  'plan_digest',
  'constructor',
  '__proto__',
  'more',
];

/** Replaces, adds, removes, or moves one part somewhere in the value. `choose` returns a number below its argument. */
function changed(value: unknown, choose: (below: number) => number): unknown {
  if (typeof value !== 'object' || value === null || choose(4) === 0) return values[choose(values.length)];
  const entries = Object.entries(value);
  const at = choose(entries.length + 1);
  const entry = entries[at];
  if (entry === undefined) entries.push([keys[choose(keys.length)]!, values[choose(values.length)]]);
  else {
    const how = choose(6);
    if (how === 0) entries.splice(at, 1);
    else if (how === 1) entries.reverse();
    else entry[1] = changed(entry[1], choose);
  }
  return Array.isArray(value) ? entries.map(([, element]) => element) : Object.fromEntries(entries);
}

test('accepts nothing that the schema refuses or changes', () => {
  let plain = 0;
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 10_000 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 3 }),
      (choices, times) => {
        let next = 0;
        let json: unknown = message;
        for (let i = 0; i < times; i++) json = changed(json, (below) => choices[next++ % choices.length]! % below);
        json = JSON.parse(JSON.stringify(json), (_, value) => (value === 1e300 ? Number.POSITIVE_INFINITY : value));
        if (!isPlainReport(json)) return;
        plain++;
        const parsed = agentMessageSchema.safeParse(json);
        expect(parsed.error).toBeUndefined();
        // Equal texts also mean the same order of fields.
        expect(JSON.stringify(parsed.data)).toBe(JSON.stringify(json));
      },
    ),
    { numRuns: 2_000 },
  );
  expect(plain).toBeGreaterThan(20);
});
