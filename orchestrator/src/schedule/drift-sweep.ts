import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../../lib/src/clock.ts';
import { anyDue, pullIn, queueDue, type SweepRules } from '../domain/drift/drift-sweep.ts';
import type { Context } from '../domain/shared/context.ts';
import { fencedBy, type Lease } from '../domain/shared/leases.ts';

/** Queues due drift checks every second and whenever a check ends. */

const intervalMs = 1_000;
/** Milliseconds between searches for agents whose next check is later than the current drift interval allows. */
const pullInMs = 3_600_000;

export interface DriftSweepOptions extends SweepRules {
  /** The drift sweep lease. Only the process that holds the lease sweeps. */
  readonly lease: Lease;
  /** Reports whether sweeps are paused. A paused sweep queues no checks. */
  readonly paused?: () => boolean;
}

export interface DriftSweep {
  /** Queues due checks now. For tests. */
  turn(): Promise<void>;
  /** Resolves when no sweep is in progress. For tests. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export function startDriftSweep(context: Context, clock: Clock, options: DriftSweepOptions): DriftSweep {
  const { lease } = options;
  let stopped = false;
  let pulledInAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | null = null;
  let again = false;
  let cancelTimer = () => {};
  /** IDs of checks that this process queued and that have not ended. */
  const pending = new Set<string>();

  const lookOnce = async () => {
    if (options.paused?.() === true) return;
    const pull = clock.monotonic() - pulledInAt >= pullInMs;
    const isIdle = !pull && !(await anyDue(context));
    // A draining process releases the lease even if no check is due.
    const fence = await lease.hold();
    if (fence === null) return lease.release();
    if (isIdle) return;
    const fleet = fencedBy(context, fence);
    if (pull) {
      await pullIn(fleet, options);
      pulledInAt = clock.monotonic();
    }
    for (const id of await queueDue(fleet, options)) pending.add(id);
    // If the hint that a check has ended arrives before the check's ID is added, the ID stays in the set until it is
    // the oldest ID.
    while (pending.size > options.maxConcurrent) pending.delete(pending.values().next().value as string);
  };
  /** Runs one sweep at a time. A call during a sweep starts another sweep afterward. Never rejects. */
  const look = (): Promise<void> => {
    again = true;
    looking ??= (async () => {
      while (again && !stopped) {
        again = false;
        await lookOnce();
      }
    })()
      .catch((error: unknown) => context.log.error({ err: error }, 'failed to queue due drift checks; will retry'))
      .finally(() => {
        looking = null;
      });
    return looking;
  };
  // Detaches the call from the async context of the request that sent the hint, so that log lines do not contain that
  // request's ID.
  const lookLater = AsyncResource.bind(() => void look());
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'operation_ended' && pending.delete(hint.operation_id)) lookLater();
  });
  const schedule = () => {
    cancelTimer = clock.after(intervalMs, () => {
      void look().then(() => {
        if (!stopped) schedule();
      });
    });
  };
  schedule();
  return {
    turn: look,
    settled: async () => {
      await looking;
    },
    async stop() {
      stopped = true;
      cancelTimer();
      unsubscribe();
      await looking;
      await lease
        .release()
        .catch((error: unknown) => context.log.warn({ err: error }, 'failed to release the drift sweep lease'));
    },
  };
}
