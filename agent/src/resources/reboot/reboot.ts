import type { ResourceBodies } from '@muster/protocol/module';
import { currentBoot, needsReboot, rebootMarkers, requestReboot } from '../../host/reboot.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Machine, nothing, type Outcome } from '../provider/provider.ts';

export interface SeenReboot {
  /** Identifier of the boot. From it, the agent later determines whether the machine has rebooted. */
  boot: string;
  isNeeded: boolean;
  /** Milliseconds until the maintenance window closes, at most 0 if none is open. Observed only with `window_only`. */
  windowMs?: number;
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
  fields: { name: 'text', when: 'text?', delay: 'integer?', window_only: 'boolean?' },
  recheckable: false,
  watched: ({ body }) => (body.when === 'triggered' ? [] : [...rebootMarkers]),

  observe: ({ body }, _circumstances, machine) => ({
    boot: currentBoot(),
    isNeeded: needsReboot(),
    ...(body.window_only === true ? { windowMs: leftOf(machine) } : {}),
  }),

  diff({ body }, { isNeeded, windowMs }, { rerunBy, purpose }) {
    const isDue = isNeeded && body.when !== 'triggered';
    if (!isDue && rerunBy.length === 0) return nothing();
    const difference = run(isDue ? [{ field: 'needed', from: 'yes', to: 'no' }] : []);
    const waits = purpose === 'drift' || windowMs === undefined ? null : whyItWaits(windowMs, body.delay ?? 0);
    return waits === null ? difference : { ...difference, waits };
  },

  remember: async () => ({ was: 'run' }),

  async together(items, machine) {
    // Every item is an apply, because removals change nothing. Adjacent resources share one reboot, after the longest delay.
    const bodies = items.map(({ resource }) => resource.body as ResourceBodies['reboot']);
    const delay = Math.max(...bodies.map((body) => body.delay ?? 0));
    const isInWindow = bodies.some((body) => body.window_only === true);
    const outcome = await rebootAfter({ delay, isInWindow }, machine);
    return items.map(() => outcome);
  },

  wasApplied: (_resource, brief, seenNow) => (brief as unknown as SeenReboot).boot !== seenNow.boot,

  observeForRemoval: () => ({ boot: currentBoot(), isNeeded: false }),
  diffRemoval: () => nothing('no longer managed'),
  remove: async () => ({}),
});

/** Returns milliseconds until the maintenance window closes, at most 0 if none is open. */
const leftOf = ({ windowEnd, clock }: Machine): number => (windowEnd === null ? 0 : windowEnd * 1000 - clock.now());

/**
 * Returns why the machine cannot reboot now; null if it can.
 * @param windowMs milliseconds until the maintenance window closes; at most 0 if none is open
 * @param delay seconds before the reboot
 */
function whyItWaits(windowMs: number, delay: number): string | null {
  if (windowMs <= 0)
    return 'the reboot is due, but no maintenance window of this agent is open; apply again in one, or remove `window_only`';
  return windowMs <= delay * 1000
    ? 'the reboot is due, but the maintenance window closes before its `delay` ends; apply again in the next one'
    : null;
}

/**
 * Reboots the machine. Returns only if the operation is canceled, the maintenance window closes, the agent stops, or the
 * machine keeps running.
 */
async function rebootAfter(
  { delay, isInWindow }: { delay: number; isInWindow: boolean },
  machine: Machine,
): Promise<Outcome> {
  if (await passes(delay * 1000, machine)) return { failure: 'canceled before the reboot' };
  if (machine.stop.aborted) return { failure: 'the agent stopped before the reboot' };
  // An agent that restarts waits again, and other resources may have taken long since the observation.
  if (isInWindow && leftOf(machine) <= 0) return { failure: 'the maintenance window closed before the reboot' };
  await requestReboot(machine);
  const { clock, stop } = machine;
  const deadline = clock.monotonic() + shutdownMs;
  while (clock.monotonic() < deadline && !stop.aborted)
    await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  return { failure: `shutdown succeeded, but the machine is still running after ${shutdownMs / 60_000} minutes` };
}

/**
 * Waits until the given time has passed, the agent stops, or the operation is canceled.
 * @returns whether the operation was canceled
 */
async function passes(ms: number, { clock, stop, cancelled }: Machine): Promise<boolean> {
  const deadline = clock.monotonic() + ms;
  while (!cancelled() && !stop.aborted && clock.monotonic() < deadline)
    await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  return cancelled();
}
