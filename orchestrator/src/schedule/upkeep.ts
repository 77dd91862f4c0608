import type { Clock } from '../../../lib/src/clock.ts';
import { deleteOldTokens } from '../domain/agents/enrollment.ts';
import { createLostWatch } from '../domain/agents/lost-agents.ts';
import type { PendingList } from '../domain/agents/pending-list.ts';
import type { Refusals } from '../domain/audit/refusals.ts';
import { pruneHistory, prunePayloads, type Retention } from '../domain/fleet/retention.ts';
import { pruneContents } from '../domain/modules/contents.ts';
import { endLost, expireQueued, expireSessions } from '../domain/operation-end/operation-expiry.ts';
import { deleteOldAnswers } from '../domain/operators/sign-in-challenges.ts';
import type { RunConductor } from '../domain/runs/run-conductor.ts';
import { endFinishedRuns } from '../domain/runs/run-end.ts';
import { dropFormerSecrets } from '../domain/secrets/former-secrets.ts';
import { announceExpiring } from '../domain/secrets/secret-expiry.ts';
import { missingKey } from '../domain/secrets/secret-rotation.ts';
import type { Context } from '../domain/shared/context.ts';
import { createHealth, type Health } from '../domain/shared/health.ts';
import { deleteExpiredTickets } from '../domain/terminals/terminal-tickets.ts';

/** Periodic maintenance, with one timer for all tasks. */

const intervalMs = 5_000;
/**
 * Number of rounds between deletions of expired sign-in sessions, challenges, and tickets, which are refused as soon as
 * they expire.
 */
const sessionsEvery = 60;
/** Number of rounds between deletions of old payloads, tokens, history, and recordings. */
const pruneEvery = 720;
/** Number of rounds between searches for former secret values that no machine needs anymore. */
const formerSecretsEvery = 12;

export interface Upkeep {
  /** Runs one round. For tests and startup. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface UpkeepOptions {
  health?: Health;
  /** Seconds of silence after which an agent is marked as lost. */
  lostAfterSecs?: number;
  retention?: Retention;
  /** Removes expired terminal sessions and their transcripts. */
  pruneTerminals?: () => Promise<unknown>;
  /** Removes expired samples. */
  pruneSamples?: () => Promise<void>;
  runs?: Pick<RunConductor, 'sweep'>;
  /** Records the counts of repeated refusals. */
  refusals?: Pick<Refusals, 'sweep'>;
  /** Removes disconnected pending agents, and records bursts of new pending agents. */
  pending?: Pick<PendingList, 'sweep'>;
  /** Number of days before a secret's expiry at which the expiry is announced. */
  secretsExpiryNoticeDays?: number;
}

type Task = () => Promise<unknown> | undefined;

/** Runs all tasks in order, even if some fail. @param failures collects the thrown errors */
async function runEach(tasks: readonly Task[], failures: unknown[]): Promise<void> {
  for (const task of tasks)
    try {
      await task();
    } catch (error) {
      failures.push(error);
    }
}

const keepForever: Retention = { driftDays: 0, operationDays: 0 };

export function startUpkeep(context: Context, clock: Clock, options: UpkeepOptions = {}): Upkeep {
  const {
    health = createHealth(context),
    lostAfterSecs = 120,
    retention = keepForever,
    pruneSamples = async () => {},
    runs,
    refusals,
    pending,
  } = options;
  const { secretsExpiryNoticeDays = 14, pruneTerminals } = options;
  const startedAt = clock.monotonic();
  const lostAgents = createLostWatch(context, { lostAfterSecs, upFor: () => clock.monotonic() - startedAt });
  let stopped = false;
  let rounds = 0;
  let running: Promise<void> = Promise.resolve();
  let cancelTimer = () => {};

  const round = async () => {
    await health.proveWritable();
    const no = rounds++;
    const failures: unknown[] = [];
    const each = (...tasks: Task[]) => runEach(tasks, failures);
    await each(
      () => expireQueued(context),
      () => endLost(context),
      () => runs?.sweep(),
      () => endFinishedRuns(context),
      () => lostAgents.round(),
    );
    // Skipped in the first round to shorten startup.
    if (no % pruneEvery === pruneEvery - 1)
      await each(
        () => prunePayloads(context),
        () => pruneContents(context),
        () => deleteOldTokens(context),
        () => pruneHistory(context, retention),
        async () => pruneTerminals?.(),
      );
    if (no % formerSecretsEvery === 0) await each(() => dropFormerSecrets(context));
    await each(
      async () => refusals?.sweep(),
      async () => pending?.sweep(clock.monotonic() - startedAt),
      () => announceExpiring(context, secretsExpiryNoticeDays),
      async () => {
        // Checked in the first round, because keys can disappear only while the orchestrator is stopped. Repeated until
        // no secret needs a missing key.
        if (no === 0 || !health.secretsReadable) health.secretsReadable = (await findMissingKey()) === null;
      },
    );
    if (no % sessionsEvery === 0)
      await each(
        () => expireSessions(context),
        () => deleteOldAnswers(context),
        () => deleteExpiredTickets(context),
      );
    await each(() => pruneSamples());
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
    if (failures.length === 1) throw failures[0];
  };
  const findMissingKey = async () => {
    const key = await missingKey(context);
    if (key !== null && health.secretsReadable)
      context.log.error(
        { key_id: key },
        'secrets cannot be used: their encryption key is missing. Restore the key and restart; if it is lost, set each secret again or remove it',
      );
    return key;
  };
  const schedule = () => {
    cancelTimer = clock.after(intervalMs, () => {
      running = round()
        .catch((error: unknown) => context.log.error({ err: error }, 'periodic maintenance failed; will retry'))
        .then(() => {
          if (!stopped) schedule();
        });
    });
  };
  schedule();
  return {
    round,
    async stop() {
      stopped = true;
      cancelTimer();
      await running;
      lostAgents.stop();
    },
  };
}
