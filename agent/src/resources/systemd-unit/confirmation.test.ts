import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../../lib/src/clock.ts';
import type { Machine } from '../provider/provider.ts';
import { confirmWork } from './confirmation.ts';
import type { Work } from './work.ts';

/** Skips short waits, but not the time limits of commands. */
const clock: Clock = { ...systemClock, after: (ms, action) => systemClock.after(ms <= 1_000 ? 0 : ms, action) };

/**
 * Returns the failure of a service whose checks fail.
 * @param attempts number of times that the command starts; if there is more than one attempt, the last one times out
 *   immediately
 */
async function failureOf(
  body: object,
  followsSecret: boolean,
  { sensitive = [] as string[], attempts = 1 } = {},
): Promise<string | null> {
  const limits: (() => void)[] = [];
  const resource = { key: 'service-systemd:s', type: 'service-systemd', body, sensitive_fields: sensitive };
  const item = { kind: 'apply', resource } as unknown as Work['item'];
  const work = { name: 's.service', item, process: 'reload', failure: null } as Work;
  const stop = new AbortController();
  let started = 0;
  const machine = {
    clock: {
      ...clock,
      after: (ms: number, action: () => void) => {
        if (ms > 1_000) limits.push(action);
        return clock.after(ms, action);
      },
    },
    stop: stop.signal,
    startedProcess: () => {
      if (++started < attempts) return;
      stop.abort();
      if (started > 1) setImmediate(() => limits.at(-1)?.());
    },
    followsSecret: () => followsSecret,
  } as unknown as Machine;
  await confirmWork([work], machine);
  return work.failure;
}

test('reports the output of `confirm_command`, unless the service or a file that triggers it has a secret', async () => {
  const body = { confirm_command: 'echo "password hunter2" >&2; exit 3' };
  expect(await failureOf(body, false)).toContain('`confirm_command` exited with 3 (password hunter2)');
  for (const shown of [await failureOf(body, true), await failureOf(body, false, { sensitive: ['confirm_command'] })]) {
    expect(shown).toContain('`confirm_command` exited with 3 within');
    expect(shown).not.toContain('hunter2');
  }
});

test('reports how `confirm_command` ended if only its last attempt reaches the time limit', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'confirmation-'));
  const confirm_command = `mkdir ${folder}/first || exec sleep 60; exit 3`;
  const fault = await failureOf({ confirm_command }, false, { attempts: 2 });
  await rm(folder, { recursive: true });
  expect(fault).toContain('`confirm_command` exited with 3 within');
});
