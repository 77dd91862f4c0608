import type { ResourceBodies } from '@muster/protocol/module';
import { currentBoot, needsReboot, rebootMarkers, requestReboot } from '../../host/reboot.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Machine, nothing, type Outcome } from '../provider/provider.ts';

export interface SeenReboot {
  /** Identifier of the boot. From it, the agent later determines whether the machine has rebooted. */
  boot: string;
  isNeeded: boolean;
}

/** A reboot cannot be undone, so nothing is recorded. */
export type RebootBefore = { was: 'run' };

/** Milliseconds within which a reboot must stop the agent. systemd gives a unit 90 s to stop by default. */
const shutdownMs = 10 * 60_000;
const pollMs = 250;

const run = (changes: Difference['changes']): Difference => ({ action: 'run', changes, diff: null });

/**
 * Reboots the machine. The shutdown stops the agent in the middle of the step. The next agent finds that the boot
 * differs from the journaled one, and continues with the next step.
 */
export const reboot = defineProvider<'reboot', SeenReboot, RebootBefore>({
  type: 'reboot',
  fields: { name: 'text', when: 'text?', delay: 'integer?' },
  recheckable: false,
  watched: ({ body }) => (body.when === 'triggered' ? [] : [...rebootMarkers]),

  observe: () => ({ boot: currentBoot(), isNeeded: needsReboot() }),

  diff({ body }, { isNeeded }, { rerunBy }) {
    if (isNeeded && body.when !== 'triggered') return run([{ field: 'needed', from: 'yes', to: 'no' }]);
    return rerunBy.length > 0 ? run([]) : nothing();
  },

  remember: async () => ({ was: 'run' }),
  apply: ({ body }, _seen, _difference, machine) => rebootAfter(body.delay ?? 0, machine),

  async together(items, machine) {
    // Every item is an apply, because removals change nothing. Adjacent resources share one reboot, after the longest delay.
    const delays = items.map(({ resource }) => (resource.body as ResourceBodies['reboot']).delay ?? 0);
    const outcome = await rebootAfter(Math.max(...delays), machine);
    return items.map(() => outcome);
  },

  wasApplied: (_resource, brief, seenNow) => (brief as unknown as SeenReboot).boot !== seenNow.boot,

  observeForRemoval: () => ({ boot: currentBoot(), isNeeded: false }),
  diffRemoval: () => nothing('no longer managed'),
  remove: async () => ({}),
});

/** Reboots the machine. Returns only if the operation is canceled, the agent stops, or the machine keeps running. */
async function rebootAfter(delay: number, machine: Machine): Promise<Outcome> {
  if (await passes(delay * 1000, machine)) return { failure: 'canceled before the reboot' };
  if (machine.stop.aborted) return { failure: 'the agent stopped before the reboot' };
  await requestReboot(machine);
  const { clock, stop } = machine;
  const deadline = clock.monotonic() + shutdownMs;
  while (clock.monotonic() < deadline && !stop.aborted)
    await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  return { failure: `shutdown succeeded, but the machine is still running after ${shutdownMs / 60_000} minutes` };
}

/** Waits for the given time or until the agent stops. @returns whether the operation was canceled */
async function passes(ms: number, { clock, stop, cancelled }: Machine): Promise<boolean> {
  const deadline = clock.monotonic() + ms;
  while (!cancelled() && !stop.aborted && clock.monotonic() < deadline)
    await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  return cancelled();
}
