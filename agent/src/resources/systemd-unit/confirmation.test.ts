import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../../lib/src/clock.ts';
import type { Machine } from '../provider/provider.ts';
import { confirmWork } from './confirmation.ts';
import type { Work } from './work.ts';

/** Skips short waits, but not the time limits of commands. */
const clock: Clock = { ...systemClock, after: (ms, action) => systemClock.after(ms <= 1_000 ? 0 : ms, action) };

/** Returns the failure of a service whose only check fails. */
async function failureOf(body: object, followsSecret: boolean, sensitive: string[] = []): Promise<string | null> {
  const resource = { key: 'service-systemd:s', type: 'service-systemd', body, sensitive_fields: sensitive };
  const item = { kind: 'apply', resource } as unknown as Work['item'];
  const work = { name: 's.service', item, process: 'reload', failure: null } as Work;
  const machine = {
    clock,
    // The first failed check is the last one.
    stop: AbortSignal.abort(),
    startedProcess: () => {},
    followsSecret: () => followsSecret,
  } as unknown as Machine;
  await confirmWork([work], machine);
  return work.failure;
}

test('reports what `confirm_command` printed, unless the service or a file that triggers it has a secret', async () => {
  const body = { confirm_command: 'echo "password hunter2" >&2; exit 3' };
  expect(await failureOf(body, false)).toContain('`confirm_command` ended with 3 (password hunter2)');
  for (const shown of [await failureOf(body, true), await failureOf(body, false, ['confirm_command'])]) {
    expect(shown).toContain('`confirm_command` ended with 3 within');
    expect(shown).not.toContain('hunter2');
  }
});
