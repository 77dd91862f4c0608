import type { Clock } from '../clock.ts';
import { pruneBySchedule } from '../domain/audit/audit-retention.ts';
import type { Sequencer } from '../domain/audit/event-sequencer.ts';
import type { Context } from '../domain/shared/context.ts';
import { createLease, type Fence } from '../domain/shared/leases.ts';

/** Keeps the audit log: gives events their places, soon after they were written, and removes what is too old. */

/** How long events gather for one unit. */
const gatherMs = 25;
/** How often it is looked for what no hint told of; the lease is kept by it as well. */
const sweepMs = 2_000;
const retryMs = 1_000;
const pruneEveryMs = 300_000;

export interface AuditKeeping {
  /** Places what there is; for tests. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface AuditKeepingOptions {
  sequencer: Sequencer;
  /** Of the configuration; 0: nothing is removed. */
  /** Read at each round. */
  readonly retentionDays: number;
  /** Names this process among those that share the database, the same after a restart. */
  holder: string;
}

export function startAuditKeeping(context: Context, clock: Clock, options: AuditKeepingOptions): AuditKeeping {
  const { sequencer, holder } = options;
  const lease = createLease(context, 'audit', holder);
  let running: Promise<void> | null = null;
  let due: { at: number; callOff: () => void } | null = null;
  let pruneAt = clock.monotonic();
  let pruning: Promise<void> | null = null;
  const stopping = new AbortController();

  const work = async () => {
    for (;;) {
      const fence = await lease.hold();
      if (fence === null) return;
      if (await sequencer.place(fence)) continue;
      if (clock.monotonic() >= pruneAt) {
        pruneAt = clock.monotonic() + pruneEveryMs;
        // Beside the chain, which goes on meanwhile.
        pruning ??= prune(fence).finally(() => {
          pruning = null;
        });
      }
      return;
    }
  };
  const prune = async (fence: Fence) => {
    try {
      const deleted = await pruneBySchedule(context, options.retentionDays, { fence, signal: stopping.signal });
      if (deleted > 0) context.log.info({ deleted }, 'removed expired audit events');
    } catch (error) {
      context.log.error({ err: error }, 'failed to remove expired audit events; will retry');
    }
  };
  const round = async () => {
    // What was written before this is placed after it: a round under way may have looked already.
    while (running !== null) await (running as Promise<void>).catch(() => {});
    running = work();
    try {
      await running;
    } finally {
      running = null;
    }
  };
  /** One timer, for the earliest reason to look. */
  const lookIn = (ms: number) => {
    const at = clock.monotonic() + ms;
    if (stopping.signal.aborted || (due !== null && due.at <= at)) return;
    due?.callOff();
    due = { at, callOff: clock.after(ms, look) };
  };
  const look = () => {
    due = null;
    round().then(
      () => lookIn(sweepMs),
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
      due?.callOff();
      while (running !== null) await (running as Promise<void>).catch(() => {});
      await pruning;
      // Whoever stops does so without the database, too: then the lease runs out.
      await lease.release().catch((error: unknown) => {
        context.log.warn({ err: error }, 'failed to release the lease of the audit log');
      });
    },
  };
}
