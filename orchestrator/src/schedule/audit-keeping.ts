import type { Clock } from '../../../lib/src/clock.ts';
import { pruneBySchedule } from '../domain/audit/audit-retention.ts';
import type { Sequencer } from '../domain/audit/event-sequencer.ts';
import type { Context } from '../domain/shared/context.ts';
import type { Fence, Lease } from '../domain/shared/leases.ts';

/** Maintains the audit log: chains events soon after they are written, and removes expired events. */

/** Number of milliseconds for which events are collected into one transaction. */
const gatherMs = 25;
/** Milliseconds between searches for events that no hint announced. Each search also checks the lease. */
const sweepMs = 2_000;
/** {@link sweepMs} of a replica, which gets no hints about the events of other replicas. */
const replicaSweepMs = 1_000;
const retryMs = 1_000;
const pruneEveryMs = 300_000;

export interface AuditKeeping {
  /** Adds all stored events to the chain. For tests. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface AuditKeepingOptions {
  sequencer: Sequencer;
  /** The audit log lease. Only the process that holds the lease maintains the log. */
  readonly lease: Lease;
  /** Retention period in days; 0 retains all events. Read in each round. */
  readonly retentionDays: number;
}

export function startAuditKeeping(context: Context, clock: Clock, options: AuditKeepingOptions): AuditKeeping {
  const { sequencer, lease } = options;
  let running: Promise<void> | null = null;
  let due: { at: number; cancelTimer: () => void } | null = null;
  let pruneAt = clock.monotonic();
  let pruning: { readonly done: Promise<void>; readonly abort: () => void } | null = null;
  const stopping = new AbortController();

  const work = async () => {
    for (;;) {
      const fence = await lease.hold();
      if (fence === null) {
        pruning?.abort();
        await pruning?.done;
        return lease.release();
      }
      if (await sequencer.place(fence)) continue;
      if (clock.monotonic() >= pruneAt) {
        pruneAt = clock.monotonic() + pruneEveryMs;
        // Runs in the background, because pruning may take a long time and new events must be chained in the meantime.
        pruning ??= startPruning(fence);
      }
      return;
    }
  };
  const startPruning = (fence: Fence) => {
    const aborting = new AbortController();
    const signal = AbortSignal.any([stopping.signal, aborting.signal]);
    const done = prune(fence, signal).finally(() => {
      pruning = null;
    });
    return { done, abort: () => aborting.abort() };
  };
  const prune = async (fence: Fence, signal: AbortSignal) => {
    try {
      const deleted = await pruneBySchedule(context, options.retentionDays, { fence, signal });
      if (deleted > 0) context.log.info({ deleted }, 'removed expired audit events');
    } catch (error) {
      context.log.error({ err: error }, 'failed to remove expired audit events; will retry');
    }
  };
  const round = async () => {
    // A round in progress may have missed the newest events. Therefore, waits until it ends and runs another round.
    while (running !== null) await (running as Promise<void>).catch(() => {});
    running = work();
    try {
      await running;
    } finally {
      running = null;
    }
  };
  /** Schedules a round unless one is already scheduled for an earlier time. */
  const lookIn = (ms: number) => {
    const at = clock.monotonic() + ms;
    if (stopping.signal.aborted || (due !== null && due.at <= at)) return;
    due?.cancelTimer();
    due = { at, cancelTimer: clock.after(ms, look) };
  };
  const look = () => {
    due = null;
    round().then(
      () => lookIn(context.isReplica ? replicaSweepMs : sweepMs),
      (error: unknown) => {
        context.log.error({ err: error }, 'failed to maintain the audit log; will retry');
        lookIn(retryMs);
      },
    );
  };
  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'audited') lookIn(gatherMs);
  });
  lookIn(0);

  return {
    round,
    async stop() {
      stopping.abort();
      unsubscribe();
      due?.cancelTimer();
      while (running !== null) await (running as Promise<void>).catch(() => {});
      await pruning?.done;
      // Stopping must succeed even if the database is unavailable. In this case, the lease ends with this process.
      await lease.release().catch((error: unknown) => {
        context.log.warn({ err: error }, 'failed to release the audit log lease');
      });
    },
  };
}
