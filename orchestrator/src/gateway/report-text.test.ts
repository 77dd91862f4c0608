import { limits, reportsSchema } from '@muster/protocol/wire';
import { expect, test } from 'vitest';
import { readReports } from './report-text.ts';

const operation_id = '0'.repeat(26);
const result = {
  ...{ module: 'm', id: null, type: 'file-unix', identity: '/a', action: 'update', status: 'changed', diff: null },
  ...{ changes: [{ field: 'mode', from: null, to: '0644' }], triggered_by: ['a'], corrective: false, message: null },
  ...{ duration_ms: 1, sensitive: false },
};
const reports = [
  { type: 'accepted', operation_id },
  { type: 'results', operation_id, position: 0, results: [result] },
  { type: 'output', operation_id, resource: 'm/"a\\":1', stdout: ':"', stderr: '', exit_code: 0, truncated: false },
  {
    ...{ type: 'finished', operation_id, status: 'succeeded', error: null, started_at: 1, finished_at: 2 },
    ...{
      summary: { total: 1, unchanged: 0, changed: 1, removed: 0, failed: 0, skipped: 0 },
      plan_digest: 'ab'.repeat(32),
    },
  },
];

test('parses every kind of report', () => {
  expect(readReports(JSON.stringify(reports))).toEqual(reportsSchema.parse(reports));
});

test('describes the first error in a report', () => {
  expect(readReports('[{"type":')).toBe('the joined pieces are not valid JSON');
  expect(readReports('["type')).toBe('the joined pieces are not valid JSON');
  expect(readReports('[{"type":"accepted"}]')).toMatch(/^a message does not match its schema: 0\.operation_id: /);
  expect(readReports('[{"type":"accepted","\\u0061":1}]')).toBe('unknown key "\\\\u0061"');
});

test('refuses a report full of unknown keys before parsing it', () => {
  const keys = Array.from({ length: 350_000 }, (_, at) => `"k${at}":1`).join(',');
  const text = `[{"type":"results",${keys}}]`;
  expect(text.length).toBeLessThan(limits.reportLength);
  const { parse } = JSON;
  let parsed = 0;
  JSON.parse = (...args) => {
    parsed++;
    return parse(...args);
  };
  try {
    expect(readReports(text)).toBe('unknown key "k0"');
  } finally {
    JSON.parse = parse;
  }
  expect(parsed).toBe(0);
  expect(String(readReports(`[{"${'k'.repeat(1_000_000)}":1}]`)).length).toBeLessThan(200);
});
