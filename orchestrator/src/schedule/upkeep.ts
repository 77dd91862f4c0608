import type { Clock } from '../clock.ts';
import type { Context } from '../domain/context.ts';
import { deleteOldTokens } from '../domain/enrolment.ts';
import { endLost, expireQueued, expireSessions } from '../domain/expiry.ts';
import { proveWritable } from '../domain/health.ts';
import { createLostWatch } from '../domain/lost-agents.ts';
import { pruneHistory, prunePayloads, type Retention } from '../domain/retention.ts';
import type { RunConductor } from '../domain/run-conductor.ts';
import { settleRuns } from '../domain/run-end.ts';

/** What must be done now and then, whoever asks for anything: one timer for all of it. */

const intervalMs = 5_000;
/** Sessions are deleted rarely: an expired one is refused anyway. */
const sessionsEvery = 60;
/** Rounds between two looks for what is old. */
const pruneEvery = 720;

export interface Upkeep {
  /** Whether the database took a write when it was last tried. */
  readonly healthy: boolean;
  /** One round, for tests and for start. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface UpkeepOptions {
  /** An agent that was not heard for so long is lost. */
  lostAfterSecs?: number;
  retention?: Retention;
  /** Drops samples that are too old. */
  pruneSamples?: () => Promise<void>;
  /** Sees runs through. */
  runs?: Pick<RunConductor, 'sweep'>;
}

const forEver: Retention = { driftDays: 0, operationDays: 0 };

export function startUpkeep(
  context: Context,
  clock: Clock,
  { lostAfterSecs = 120, retention = forEver, pruneSamples = async () => {}, runs }: UpkeepOptions = {},
): Upkeep {
  const startedAt = clock.monotonic();
  const lostAgents = createLostWatch(context, { lostAfterSecs, upFor: () => clock.monotonic() - startedAt });
  let stopped = false;
  let rounds = 0;
  let healthy = true;
  let running: Promise<void> = Promise.resolve();
  let callOff = () => {};

  const round = async () => {
    try {
      await proveWritable(context);
      healthy = true;
    } catch (error) {
      healthy = false;
      throw error;
    }
    await expireQueued(context);
    await endLost(context);
    await runs?.sweep();
    await settleRuns(context);
    await lostAgents.round();
    // Not in the first round: starting is busy enough.
    if (rounds % pruneEvery === pruneEvery - 1) {
      await prunePayloads(context);
      await deleteOldTokens(context);
      await pruneHistory(context, retention);
    }
    if (rounds++ % sessionsEvery === 0) await expireSessions(context);
    // Last: where samples lie may fail by itself.
    await pruneSamples();
  };
  const schedule = () => {
    callOff = clock.after(intervalMs, () => {
      running = round()
        .catch((error: unknown) => context.log.error({ err: error }, 'upkeep failed; it is tried again'))
        .then(() => {
          if (!stopped) schedule();
        });
    });
  };
  schedule();
  return {
    get healthy() {
      return healthy;
    },
    round,
    async stop() {
      stopped = true;
      callOff();
      await running;
    },
  };
}
