import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import { isRunning, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { removeDirectory, temporaryDirectory } from '../../converge/test/agent.ts';
import { LeftRunning, runTransaction, type Transaction } from './transaction.ts';

let home: string;
beforeEach(() => {
  home = temporaryDirectory();
});
afterEach(() => removeDirectory(home));

const transaction = (text: string, more: Partial<Transaction> = {}): Transaction => ({
  program: 'sh',
  args: ['-c', text],
  environment: {},
  timeLimit: 10_000,
  outputCap: 1000,
  purpose: 'test',
  warn: () => {},
  started: () => {},
  stop: new AbortController().signal,
  ...more,
});

describe('a transaction', () => {
  test('reports the exit code of a transaction and its last output lines in order', async () => {
    const result = await runTransaction(transaction('echo out; echo err >&2; exit 3'), systemClock);
    expect(result).toEqual({ exitCode: 3, signal: null, output: 'out\nerr\n', truncated: false, timedOut: false });
    const long = await runTransaction(transaction('seq 1 1000', { outputCap: 9 }), systemClock);
    expect(long).toMatchObject({ output: '999\n1000\n', truncated: true });
  });

  test('runs a transaction with a clean environment', async () => {
    // The service and the launcher set this variable only for the agent.
    vi.stubEnv('MALLOC_ARENA_MAX', '1');
    const { output } = await runTransaction(transaction('env'), systemClock);
    vi.unstubAllEnvs();
    expect(output).toContain('PATH=/usr/local/sbin');
    expect(output).not.toContain('MALLOC');
  });

  test('lets a transaction continue when the agent stops, and never blocks its output', async () => {
    const stop = new AbortController();
    let process: ProcessIdentity | null = null;
    const text = `touch ${home}/begun; until test -e ${home}/go; do sleep 0.02; done; seq 1 100000; touch ${home}/done`;
    const running = runTransaction(
      transaction(text, { stop: stop.signal, started: (identity) => (process = identity) }),
      systemClock,
    );
    await expect.poll(() => existsSync(`${home}/begun`)).toBe(true);
    stop.abort();
    await expect(running).rejects.toThrow(LeftRunning);
    expect(isRunning(process as unknown as ProcessIdentity)).toBe(true);
    writeFileSync(`${home}/go`, '');
    await expect.poll(() => existsSync(`${home}/done`)).toBe(true);
  });

  test('lets a transaction begin its work only after it is recorded', async () => {
    const text = `touch ${home}/did`;
    const started = (): void => {
      throw new Error('the journal does not take it');
    };
    await expect(runTransaction(transaction(text, { started }), systemClock)).rejects.toThrow(/journal/);
    await sleep(150);
    expect(existsSync(`${home}/did`)).toBe(false);
  });

  test('sends SIGTERM to a transaction at the time limit, so that it can clean up', async () => {
    const text = `trap 'touch ${home}/cleared; exit 9' TERM; touch ${home}/begun; sleep 30 & wait`;
    const clock = new ManualClock();
    const running = runTransaction(transaction(text, { timeLimit: 500 }), clock);
    await expect.poll(() => existsSync(`${home}/begun`)).toBe(true);
    clock.advance(500);
    expect(await running).toMatchObject({ timedOut: true, exitCode: 9 });
    expect(existsSync(`${home}/cleared`)).toBe(true);
  });

  test('starts no transaction when the agent is stopping', async () => {
    const running = runTransaction(transaction(`touch ${home}/did`, { stop: AbortSignal.abort() }), systemClock);
    await expect(running).rejects.toThrow(/agent is stopping/);
    expect(existsSync(`${home}/did`)).toBe(false);
  });
});
