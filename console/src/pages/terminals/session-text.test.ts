import { expect, test } from 'vitest';
import { clockTime, endText, exitText, modeOf, secondsOf } from './session-text.ts';

const controller = { operator_id: 'me', username: 'me', mode: 'control', since: 1 } as const;

test.each([
  ['own, not controlled', { operator_id: 'me', attached: [] }, '', false, 'control'],
  ['own, controlled by another tab', { operator_id: 'me', attached: [controller] }, '', false, 'view'],
  ['own, controlled by this tab before a reload', { operator_id: 'me', attached: [controller] }, '', true, 'control'],
  ['of another operator', { operator_id: 'you', attached: [] }, '', false, 'view'],
  ['control is requested', { operator_id: 'you', attached: [] }, 'control', false, 'control'],
  ['watching is requested', { operator_id: 'me', attached: [] }, 'view', true, 'view'],
] as const)("chooses a terminal session's mode: %s", (_, { operator_id, attached }, requested, before, mode) => {
  expect(modeOf({ operator_id, attached: [...attached] }, 'me', requested, before)).toBe(mode);
});

test('formats durations as a clock', () => {
  expect([0, 7.9, 67, 3_729, -1].map(clockTime)).toEqual(['0:00', '0:07', '1:07', '1:02:09', '0:00']);
  const session = { opened_at: 100, closed_at: null } as never;
  expect([secondsOf(session, 160), secondsOf({ opened_at: 100, closed_at: 130 } as never, 999)]).toEqual([60, 30]);
});

test('describes how a shell exited', () => {
  expect([exitText(0, null), exitText(3, null), exitText(null, 'SIGHUP'), exitText(null, null)]).toEqual([
    'The shell has ended.',
    'The shell ended with exit code 3.',
    'The shell was terminated by SIGHUP.',
    'The shell has ended.',
  ]);
});

test('describes why a terminal session was closed', () => {
  expect([
    endText('terminal_idle', 'nothing was typed', null),
    endText('terminal_ended', 'x', null),
    endText('terminal_ended', 'x', 'the agent was lost'),
  ]).toEqual(['nothing was typed', 'The session has ended.', 'The session has ended: the agent was lost.']);
});
