import { ApiError } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import type { Interrupted } from '../context/context.ts';
import { createOutput } from '../context/output.ts';
import { CliError, exits } from '../exit.ts';
import { createPrompter } from '../keys/prompt.ts';
import { type Followed, follow } from './follow.ts';

const away = () =>
  new CliError(exits.unreachable, 'unreachable', 'no orchestrator answers at https://127.0.0.1', 'Is it?');
const stopping = () =>
  new ApiError({ type: '', title: '', status: 503, code: 'draining', detail: 'it is stopping', instance: '' });

/** Follows a run whose polls return the given results; the last one repeats. Time advances only during sleeps. */
function watching(looks: (number | Error)[], { json = false, begun = 0 as number | Error } = {}) {
  let now = 1000;
  let written = '';
  let interrupt: Interrupted | undefined;
  const stderr = { write: (text: string) => (written += text) };
  const context = {
    out: createOutput({ stdout: stderr, stderr, env: {}, json, verbose: false, now: () => now }),
    prompt: createPrompter(
      () => ({ isTTY: false }) as never,
      {} as never,
      () => () => {},
    ),
    sleep: async (milliseconds: number) => {
      now += milliseconds / 1000;
    },
    now: () => now,
    onInterrupt: (say: Interrupted) => {
      interrupt = say;
      return () => {
        interrupt = undefined;
      };
    },
  };
  const answer = (value: number | Error | undefined): number => {
    if (value instanceof Error) throw value;
    return value ?? 0;
  };
  const work: Followed<number> = {
    begin: async () => answer(begun),
    look: async () => answer(looks.length > 1 ? looks.shift() : looks[0]),
    hasEnded: (far) => far === 3,
    draw: () => [],
    changeLines: () => [],
    see: (far) => `muster runs ${far === null ? 'list' : 'show R'}`,
    end: () => 'muster runs cancel R',
    cancel: async () => {},
  };
  return {
    ended: follow(context, work),
    written: () => written,
    seconds: () => now - 1000,
    hears: () => interrupt !== undefined,
  };
}

test('waits while the orchestrator restarts, and reports this once', async () => {
  const { ended, written, hears } = watching([1, away(), stopping(), away(), 2, away(), 3]);
  expect(await ended).toBe(3);
  expect(written().match(/no orchestrator answers/g)).toHaveLength(2);
  expect(written().match(/The orchestrator answers again/g)).toHaveLength(2);
  expect(hears()).toBe(false);
});

test('fails after the time limit, and prints the command that shows the run', async () => {
  const { ended, seconds, hears } = watching([1, away()]);
  await expect(ended).rejects.toMatchObject({
    exit: exits.unreachable,
    code: 'unreachable',
    remedy: expect.stringMatching(
      /^Is it\?\nThe plan or apply continues on the orchestrator\. To see it: muster runs show R\nTo cancel it: muster runs cancel R$/,
    ),
  });
  expect(seconds()).toBeGreaterThan(100);
  expect(seconds()).toBeLessThan(200);
  expect(hears()).toBe(false);
});

test('fails immediately for permanent errors, and prints the command that shows the run', async () => {
  const ended = (error: Error) => watching([1, error]).ended;
  await expect(
    ended(new CliError(exits.unreachable, 'certificate_changed', 'another certificate')),
  ).rejects.toMatchObject({
    code: 'certificate_changed',
    remedy: expect.stringContaining('To see it: muster runs show R'),
  });
  await expect(
    ended(new ApiError({ type: '', title: '', status: 401, code: 'unauthenticated', detail: 'no', instance: '' })),
  ).rejects.toMatchObject({ exit: exits.signIn, remedy: expect.stringContaining('To see it: muster runs show R') });
});

test('reports that the run may have started if the connection is lost during the request', async () => {
  const cut = Object.assign(away(), { cause: Object.assign(new Error('cut'), { code: 'ECONNRESET' }) });
  await expect(watching([1], { begun: cut }).ended).rejects.toMatchObject({
    remedy: expect.stringMatching(/may have started.*muster runs list/),
  });
  const refused = Object.assign(away(), { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) });
  await expect(watching([1], { begun: refused }).ended).rejects.toMatchObject({ remedy: 'Is it?' });
});
