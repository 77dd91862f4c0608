import type { Clock } from '../../../lib/src/clock.ts';
import { deleteOldTokens } from '../domain/agents/enrollment.ts';
import { createLostWatch } from '../domain/agents/lost-agents.ts';
import type { PendingList } from '../domain/agents/pending-list.ts';
import type { Refusals } from '../domain/audit/refusals.ts';
import { pruneHistory, prunePayloads, type Retention } from '../domain/fleet/retention.ts';
import { pruneContents } from '../domain/modules/contents.ts';
import { endLost, expireQueued, expireSessions } from '../domain/operation-end/operation-expiry.ts';
import { deleteOldAnswers } from '../domain/operators/sign-in-challenges.ts';
import { alone, type Placement } from '../domain/replicas/placement.ts';
import type { RunConductor } from '../domain/runs/run-conductor.ts';
import { dropFormerSecrets } from '../domain/secrets/former-secrets.ts';
import { announceExpiring } from '../domain/secrets/secret-expiry.ts';
import { missingKey } from '../domain/secrets/secret-rotation.ts';
import type { Context } from '../domain/shared/context.ts';
import { createHealth, type Health } from '../domain/shared/health.ts';
import { createLease, type Fence, fencedBy, type Lease } from '../domain/shared/leases.ts';
import { deleteExpiredTickets } from '../domain/terminals/terminal-tickets.ts';

/**
 * Periodic maintenance, with one timer for all tasks. Each process maintains its own state. Of the processes that share
 * a database, only the process that holds the maintenance lease maintains the fleet's state.
 */

const intervalMs = 5_000;
/**
 * Number of rounds between deletions of expired sign-in sessions, challenges, and tickets, which are refused as soon as
 * they expire.
 */
const sessionsEvery = 60;
/** Number of rounds between deletions of old payloads, tokens, history, and recordings. */
const pruneEvery = 720;
/** Number of rounds between searches for previous secret values that no machine needs anymore. */
const formerSecretsEvery = 12;

export interface Upkeep {
  /** Runs one round. For tests and startup. */
  round(): Promise<void>;
  stop(): Promise<void>;
}

export interface UpkeepOptions {
  /** The maintenance lease. */
  lease?: Lease;
  placement?: Placement;
  health?: Health;
  /** Seconds of silence after which an agent is marked as lost. */
  lostAfterSecs?: number;
  retention?: Retention;
  /** Removes expired terminal sessions and their transcripts. */
  pruneTerminals?: (fleet: Context) => Promise<unknown>;
  /** Ends the terminal sessions of replicas that have ended. */
  endStrandedTerminals?: () => Promise<unknown>;
  /** Removes expired samples. */
  pruneSamples?: () => Promise<void>;
  runs?: Pick<RunConductor, 'sweep'>;
  /** Records the counts of repeated refusals. */
  refusals?: Pick<Refusals, 'sweep'>;
  /** Removes disconnected pending agents, and records bursts of new pending agents. */
  pending?: Pick<PendingList, 'report' | 'forget'>;
  /** Number of days in advance that a secret's expiry is announced. */
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

/** Holds the maintenance lease, and records since when this process has maintained the fleet. */
class FleetMaintenance {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #lease: Lease;
  #fence: Fence | null = null;
  /**
   * Monotonic milliseconds at which this process started or took over the maintenance. Agents of a process that has
   * ended reconnect after this time.
   */
  since: number;

  constructor(context: Context, clock: Clock, lease: Lease) {
    this.#context = context;
    this.#clock = clock;
    this.#lease = lease;
    this.since = clock.monotonic();
  }

  /** Returns the context for fleet maintenance; null if another process maintains the fleet. */
  async hold(): Promise<Context | null> {
    const fence = await this.#lease.hold();
    if (fence === null) await this.#lease.release();
    else if (fence !== this.#fence) this.since = this.#clock.monotonic();
    this.#fence = fence;
    return fence === null ? null : fencedBy(this.#context, fence);
  }

  /**
   * Releases the lease. Never rejects, because stopping must succeed. If the database is unavailable, the lease ends
   * with this process.
   */
  async release(): Promise<void> {
    await this.#lease
      .release()
      .catch((error: unknown) => this.#context.log.warn({ err: error }, 'failed to release the maintenance lease'));
  }
}

export function startUpkeep(context: Context, clock: Clock, options: UpkeepOptions = {}): Upkeep {
  const {
    lease = createLease(context, 'upkeep'),
    placement = alone,
    health = createHealth(context),
    lostAfterSecs = 120,
    retention = keepForever,
    pruneSamples = async () => {},
    runs,
    refusals,
    pending,
  } = options;
  const { secretsExpiryNoticeDays = 14, pruneTerminals, endStrandedTerminals } = options;
  const fleetMaintenance = new FleetMaintenance(context, clock, lease);
  const upFor = () => clock.monotonic() - Math.max(fleetMaintenance.since, placement.peerLeftAt);
  const lostAgents = createLostWatch(context, { lostAfterSecs, upFor });
  let stopped = false;
  let rounds = 0;
  let running: Promise<void> = Promise.resolve();
  let cancelTimer = () => {};

  const maintainOwn = (no: number): Task[] => [
    async () => refusals?.sweep(),
    async () => pending?.report(),
    async () => {
      // Checked in the first round, because keys can disappear only while the orchestrator is stopped. Repeated until
      // no secret needs a missing key.
      if (no === 0 || !health.secretsReadable) health.secretsReadable = (await findMissingKey()) === null;
    },
  ];
  const maintainFleet = (fleet: Context, no: number): Task[] => [
    async () => pending?.forget(fleet, upFor()),
    async () => endStrandedTerminals?.(),
    () => announceExpiring(fleet, secretsExpiryNoticeDays),
    ...(no % formerSecretsEvery === 0 ? [() => dropFormerSecrets(fleet)] : []),
    ...(no % sessionsEvery === 0
      ? [() => expireSessions(fleet), () => deleteOldAnswers(fleet), () => deleteExpiredTickets(fleet)]
      : []),
    // Skipped in the first round to shorten startup.
    ...(no % pruneEvery === pruneEvery - 1
      ? [
          () => prunePayloads(fleet),
          () => pruneContents(fleet),
          () => deleteOldTokens(fleet),
          () => pruneHistory(fleet, retention),
          async () => pruneTerminals?.(fleet),
        ]
      : []),
    () => pruneSamples(),
  ];
  const round = async () => {
    await health.proveWritable();
    const no = rounds++;
    const failures: unknown[] = [];
    const fleet = await fleetMaintenance.hold().catch((error: unknown) => {
      failures.push(error);
      return null;
    });
    const tasks: Task[] = [
      ...(fleet === null ? [] : [() => expireQueued(fleet), () => endLost(fleet)]),
      () => runs?.sweep(),
      () => lostAgents.round(fleet),
      ...maintainOwn(no),
      ...(fleet === null ? [] : maintainFleet(fleet, no)),
    ];
    await runEach(tasks, failures);
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
      await fleetMaintenance.release();
    },
  };
}
