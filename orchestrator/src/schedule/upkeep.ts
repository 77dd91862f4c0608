import type { Clock } from '../clock.ts';
import { deleteOldTokens } from '../domain/agents/enrollment.ts';
import { createLostWatch } from '../domain/agents/lost-agents.ts';
import type { PendingList } from '../domain/agents/pending-list.ts';
import type { Refusals } from '../domain/audit/refusals.ts';
import { pruneHistory, prunePayloads, type Retention } from '../domain/fleet/retention.ts';
import { endLost, expireQueued, expireSessions } from '../domain/operation-end/operation-expiry.ts';
import type { RunConductor } from '../domain/runs/run-conductor.ts';
import { settleRuns } from '../domain/runs/run-end.ts';
import { dropFormerSecrets } from '../domain/secrets/former-secrets.ts';
import { announceExpiring } from '../domain/secrets/secret-expiry.ts';
import { missingKey } from '../domain/secrets/secret-rotation.ts';
import type { Context } from '../domain/shared/context.ts';
import { proveWritable } from '../domain/shared/health.ts';

/** What must be done now and then, whoever asks for anything: one timer for all of it. */

const intervalMs = 5_000;
/** Sessions are deleted rarely: an expired one is refused anyway. */
const sessionsEvery = 60;
/** Rounds between two looks for what is old. */
const pruneEvery = 720;
/** Rounds between two looks for values of secrets that no machine can tell any more. */
const formerSecretsEvery = 12;

export interface Upkeep {
  /** Whether the database took a write when it was last tried. */
  readonly healthy: boolean;
  /** Whether the key of every secret was there when it was last looked. */
  readonly secretsReadable: boolean;
  /** One round, for tests and for start. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface UpkeepOptions {
  /** An agent that was not heard for so long is lost. */
  lostAfterSecs?: number;
  retention?: Retention;
  /** Removes terminal sessions, and what they showed, that were kept long enough. */
  pruneTerminals?: () => Promise<unknown>;
  /** Drops samples that are too old. */
  pruneSamples?: () => Promise<void>;
  /** Sees runs through. */
  runs?: Pick<RunConductor, 'sweep'>;
  /** Tells how often was refused what is refused again and again. */
  refusals?: Pick<Refusals, 'sweep'>;
  /** Forgets agents that waited for approval and left, and tells of those that came in numbers. */
  pending?: Pick<PendingList, 'sweep'>;
  /** How long before a secret expires that is said. */
  secretsExpiryNoticeDays?: number;
}

const forEver: Retention = { driftDays: 0, operationDays: 0 };

export function startUpkeep(context: Context, clock: Clock, options: UpkeepOptions = {}): Upkeep {
  const { lostAfterSecs = 120, retention = forEver, pruneSamples = async () => {}, runs, refusals, pending } = options;
  const { secretsExpiryNoticeDays = 14, pruneTerminals } = options;
  const startedAt = clock.monotonic();
  const lostAgents = createLostWatch(context, { lostAfterSecs, upFor: () => clock.monotonic() - startedAt });
  let stopped = false;
  let rounds = 0;
  let healthy = true;
  let secretsReadable = true;
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
    const no = rounds++;
    const failures: unknown[] = [];
    /** What fails holds up nothing else: each piece of work is as needed as the others. */
    const each = async (...pieces: (() => Promise<unknown> | undefined)[]) => {
      for (const piece of pieces)
        try {
          await piece();
        } catch (error) {
          failures.push(error);
        }
    };
    await each(
      () => expireQueued(context),
      () => endLost(context),
      () => runs?.sweep(),
      () => settleRuns(context),
      () => lostAgents.round(),
    );
    // Not in the first round: starting is busy enough.
    if (no % pruneEvery === pruneEvery - 1)
      await each(
        () => prunePayloads(context),
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
        // It goes missing between two starts only, and comes back when its last secret is set anew or removed.
        if (no === 0 || !secretsReadable) secretsReadable = (await findMissingKey()) === null;
      },
    );
    if (no % sessionsEvery === 0) await each(() => expireSessions(context));
    await each(() => pruneSamples());
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
    if (failures.length === 1) throw failures[0];
  };
  const findMissingKey = async () => {
    const key = await missingKey(context);
    if (key !== null && secretsReadable)
      context.log.error(
        { key_id: key },
        'secrets cannot be used: their encryption key is missing. Restore the key and restart; if it is lost, set each secret again or remove it',
      );
    return key;
  };
  const schedule = () => {
    callOff = clock.after(intervalMs, () => {
      running = round()
        .catch((error: unknown) => context.log.error({ err: error }, 'upkeep failed; will retry'))
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
    get secretsReadable() {
      return secretsReadable;
    },
    round,
    async stop() {
      stopped = true;
      callOff();
      await running;
      lostAgents.stop();
    },
  };
}
