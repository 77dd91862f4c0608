import { expect, test } from 'vitest';
import { ago, columnsOf, duration, hasColor, timestamp, withRelativeTimes } from './style.ts';

test.each([
  [0, '0s'],
  [59, '59s'],
  [216, '3m 36s'],
  [180, '3m'],
  [959, '15m'],
  [7199, '1h 59m'],
  [7200, '2h'],
  [86_400 + 30, '1d'],
  [90_000, '1d 1h'],
])('formats %i seconds as %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test('formats an approximate age', () => {
  expect(ago(1000, 1004)).toBe('just now');
  expect(ago(1000, 1000 + 7199)).toBe('1h ago');
});

test('formats a time in seconds, and an impossible time as unknown', () => {
  expect(timestamp(1_795_000_000)).toBe('2026-11-18T11:06:40Z');
  for (const at of [1e300, Number.NaN]) expect([timestamp(at), ago(at, 1000)]).toEqual(['unknown', 'unknown']);
});

test('replaces times in text from the orchestrator with relative times, unless the output is verbose', () => {
  const now = Date.parse('2026-11-28T12:00:00Z') / 1000;
  const relative = (text: string, verbose = false) => withRelativeTimes(text, { now, verbose });
  expect(relative('agent kiosk-3 is offline; last seen at 2026-11-28T09:59:00.000Z')).toBe(
    'agent kiosk-3 is offline; last seen 2h ago',
  );
  expect(relative('secret tls_key expires at 2026-12-01T12:00:00.000Z')).toBe('secret tls_key expires in 3d');
  expect(relative('refused (2 more since 2026-11-28T11:58:00Z)')).toBe('refused (2 more since 2m ago)');
  expect(relative('at 2026-99-99T99:99:99Z')).toBe('at 2026-99-99T99:99:99Z');
  expect(relative('seen at 2026-11-28T09:59:00Z', true)).toBe('seen at 2026-11-28T09:59:00Z');
});

test.each([
  ['a terminal', true, {}, true],
  ['a pipe', false, {}, false],
  ['a dumb terminal', true, { TERM: 'dumb' }, false],
  ['NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['NO_COLOR that is empty', true, { NO_COLOR: '' }, true],
  ['CLICOLOR=0', true, { CLICOLOR: '0' }, false],
  ['FORCE_COLOR=0', true, { FORCE_COLOR: '0' }, false],
  ['CLICOLOR_FORCE in a pipe', false, { CLICOLOR_FORCE: '1' }, true],
  ['CLICOLOR_FORCE=0 in a pipe', false, { CLICOLOR_FORCE: '0' }, false],
  ['FORCE_COLOR in a pipe', false, { FORCE_COLOR: '3', TERM: 'dumb' }, true],
  ['NO_COLOR together with FORCE_COLOR', true, { NO_COLOR: '1', FORCE_COLOR: '1', CLICOLOR_FORCE: '1' }, false],
])('decides whether to print colors: %s', (_, terminal, env, expected) => {
  expect(hasColor(terminal, env)).toBe(expected);
});

test('lets COLUMNS override the width of a terminal but not of a pipe', () => {
  expect(columnsOf({ isTTY: true, columns: 120 }, {})).toBe(120);
  expect(columnsOf({ isTTY: true, columns: 120 }, { COLUMNS: '60' })).toBe(60);
  expect(columnsOf({ isTTY: true, columns: 120 }, { COLUMNS: 'x' })).toBe(120);
  expect(columnsOf({ isTTY: true }, {})).toBe(80);
  expect(columnsOf({}, { COLUMNS: '60' })).toBeNull();
});
