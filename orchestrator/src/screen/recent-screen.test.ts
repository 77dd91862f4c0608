import { monitorEventLoopDelay } from 'node:perf_hooks';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { outputLines } from '../store/cast.ts';
import { createRecentScreen } from './recent-screen.ts';

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const source = { session_id: '01KAGZ7Q4W8E2R5T6Y9V0P3A1S', from: 0, to: 0, cols: 120, rows: 40, opening: '' };

test('builds the screen of a large transcript without blocking the event loop', async () => {
  const piece = outputLines(1, Buffer.from('\x1b[3;5H\x1b[31mtext that is shown\x1b[0m and more of it\r\n'.repeat(40)));
  const lines = Buffer.from(
    `${piece.repeat(Math.floor((1024 * 1024) / piece.length))}${outputLines(2, Buffer.from('END'))}`,
  );
  const recentScreen = createRecentScreen({
    transcripts: { part: async () => new Uint8Array(lines) },
    clock: systemClock,
    log,
  });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const screen = await recentScreen(source);
  delay.disable();
  expect(textOf(screen)).toContain('END');
  expect(delay.percentile(50) / 1e6).toBeLessThan(50);
});

test('cancels a screen build that exceeds its time limit, without delaying other screens', async () => {
  const clock = new ManualClock();
  const hostile = Buffer.from(outputLines(1, Buffer.from('\x1b[2000000000L'.repeat(100))));
  const kind = outputLines(1, Buffer.from('kind'));
  const part = async (sessionId: string) => new Uint8Array(sessionId === 'hostile' ? hostile : Buffer.from(kind));
  const warn = vi.fn();
  const recentScreen = createRecentScreen({ transcripts: { part }, clock, log: { ...log, warn } });
  const never = recentScreen({ ...source, session_id: 'hostile' });
  expect(textOf(await recentScreen(source))).toContain('kind');
  expect(textOf(await recentScreen(source))).toContain('kind');
  clock.advance(10_000);
  expect(textOf(await never)).toContain('cannot be restored');
  expect(warn).toHaveBeenCalledTimes(1);
});

test('returns a notice and logs a warning if the transcript cannot be read', async () => {
  const part = async () => {
    throw new Error('gone');
  };
  const recentScreen = createRecentScreen({ transcripts: { part }, clock: systemClock, log });
  for (let n = 0; n < 5; n++) expect(textOf(await recentScreen(source))).toContain('cannot be restored');
});
