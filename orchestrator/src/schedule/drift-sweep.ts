import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../clock.ts';
import { anyDue, pullIn, queueDue, type SweepRules } from '../domain/drift/drift-sweep.ts';
import type { Context } from '../domain/shared/context.ts';
import type { Lease } from '../domain/shared/leases.ts';

/** Has machines checked for drift when they are due: one timer, and a look whenever a check has ended. */

const intervalMs = 1_000;
/** How often turns that are too far off are looked for. */
const pullInMs = 3_600_000;

export interface DriftSweepOptions extends SweepRules {
  /** Of all processes that share the database one sweeps. */
  readonly lease: Lease;
  /** While it says so nothing is queued. */
  readonly paused?: () => boolean;
}

export interface DriftSweep {
  /** Looks for what is due and queues it. For tests. */
  turn(): Promise<void>;
  /** Resolves when no look is under way. For tests. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export function startDriftSweep(context: Context, clock: Clock, options: DriftSweepOptions): DriftSweep {
  const { lease } = options;
  let stopped = false;
  let pulledInAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | null = null;
  let again = false;
  let callOff = () => {};
  /** Checks that were queued here and have not ended. */
  const underWay = new Set<string>();

  const lookOnce = async () => {
    if (options.paused?.() === true) return;
    const pull = clock.monotonic() - pulledInAt >= pullInMs;
    if (!pull && !(await anyDue(context))) return;
    const fence = await lease.hold();
    if (fence === null) return;
    if (pull) {
      await pullIn(context, options, fence);
      pulledInAt = clock.monotonic();
    }
    for (const id of await queueDue(context, options, fence)) underWay.add(id);
    // What ended meanwhile was told of before it was known here; it is only forgotten late.
    while (underWay.size > options.maxConcurrent) underWay.delete(underWay.values().next().value as string);
  };
  /** One look at a time; what comes during one is followed by another. Never rejects. */
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
  // What is queued is no part of the request whose hint came first: its log lines must not say so.
  const lookLater = AsyncResource.bind(() => void look());
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'operation_ended' && underWay.delete(hint.operation_id)) lookLater();
  });
  const schedule = () => {
    callOff = clock.after(intervalMs, () => {
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
      callOff();
      unsubscribe();
      await looking;
      await lease
        .release()
        .catch((error: unknown) => context.log.warn({ err: error }, 'failed to release the lease of the drift sweep'));
    },
  };
}
