import { ApiError } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import { isFinalRefusal, reattachDelayMs } from './terminal-reattach.ts';

const refusal = (status: number, code: string) =>
  new ApiError({ type: 'about:blank', title: '', status, code, detail: '' } as never, null);

test('doubles the delay up to the maximum', () => {
  expect([0, 1, 2, 10, 5_000].map((failures) => reattachDelayMs(failures, 5_000))).toEqual([
    250, 500, 1_000, 5_000, 5_000,
  ]);
});

test.each([
  [403, 'forbidden', true],
  [404, 'terminal_not_found', true],
  [409, 'terminal_ended', true],
  [409, 'terminal_limit', false],
  [409, 'terminal_at_other_replica', false],
  [401, 'ticket_invalid', false],
  [429, 'rate_limited', false],
  [503, 'unavailable', false],
])('reports whether the refusal %i %s is permanent', (status, code, isFinal) => {
  expect(isFinalRefusal(refusal(status, code))).toBe(isFinal);
});

test('retries after an error that is not a refusal', () => {
  expect(isFinalRefusal(new TypeError('fetch failed'))).toBe(false);
});
