import { expect, test } from 'vitest';
import { informativeLines } from './log-lines.ts';

test('returns log entries at error level, and lines that are not log entries', () => {
  expect(
    informativeLines([
      '{"level":30,"msg":"GET /x"}',
      '{"level":60,"err":{"message":"disk gone"},"msg":"the database writer is lost"}',
      '{"level":"warn","message":"slow"}',
      '{"level":"error","message":"not kept","error":"EIO"}',
      '{"level":50}',
      'muster orchestrator: port 4748 is in use',
      '{broken',
      '',
    ]),
  ).toEqual([
    'the database writer is lost: disk gone',
    'not kept: EIO',
    '{"level":50}',
    'muster orchestrator: port 4748 is in use',
    '{broken',
  ]);
});
