import { operationById } from '../../store/queries/operations/operations.ts';
import { openRuns } from '../../store/queries/runs.ts';
import { announceEnd, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { LeaseLost, Leases } from '../shared/leases.ts';
import { endFinishedRun, haltRun } from './run-end.ts';
import { RunProgress } from './run-progress.ts';
import { RunQueue } from './run-queue.ts';
import { RunShards } from './run-shards.ts';
import { type RunState, RunStates, withGracePeriod } from './run-states.ts';
import type { RunTrack } from './run-track.ts';
import { expireTurns, giveTurns } from './run-turns.ts';
import { nextWave } from './run-waves.ts';

/**
 * Drives runs: whenever operations end, starts the next agents until all outcomes are known. Each run belongs to a
 * shard, and only the process that holds the shard conducts the run. The in-memory state only avoids queries: after a
 * restart or a takeover, a run continues from its rows.
 */
export interface RunConductor {
  /** Continues a run if this process conducts it. Never rejects: the sweep retries failures. */
  advance(runId: string): Promise<void>;
  /** Begins a new run. Agents that are offline now count as absent immediately. */
  begin(runId: string): Promise<void>;
  /**
   * Recovers lost hints, detects agents that connected or disconnected, and takes over shards. Runs periodically and at
   * startup.
   */
  sweep(): Promise<void>;
  /** Continues the runs of this process for which other processes have recorded outcomes since the last call. */
  followOthers(): Promise<void>;
  /** Transfers the shards that another process should hold. Never rejects. */
  handOver(): Promise<void>;
  stop(): Promise<void>;
}

export interface ConductorOptions {
  /**
   * Maximum number of agents in a run that may have an operation at the same time, unless the run sets a lower number.
   */
  maxConcurrent: number;
  leases?: Leases;
  /** Milliseconds for which a transfer of shards waits for the database. For tests. */
  transferMs?: number;
}

/**
 * Seconds for which an agent without a dispatched operation may be disconnected before it is reported as offline, if
 * the run requests that.
 */
const absentSecs = 60;
/** Milliseconds for which a small wave waits for more free slots. Each wave is a transaction with fixed costs. */
const gatherMs = 50;
/**
 * Milliseconds in which outcomes that other processes announce are combined. With other processes, each pass reads all
 * results of the run.
 */
const gatherOthersMs = 200;

export function createRunConductor(context: Context, options: ConductorOptions): RunConductor {
  const { db, presence, log } = context;
  const leases = options.leases ?? new Leases(context);
  const states = new RunStates(context, options.maxConcurrent, leases.placement);
  const shards = new RunShards(context, leases, options.transferMs);
  const progress = new RunProgress(context, shards);
  const queue = new RunQueue((runId) => whileHeld(runId, () => goOn(runId)), log);
  const isConnected = (nodeId: string) => presence.isConnected(nodeId);
  const now = () => seconds(context.now());

  const whileHeld = (runId: string, work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      if (!(error instanceof LeaseLost)) throw error;
      states.forget(runId);
      log.info({ run_id: runId }, 'another process has taken over the run');
    });

  async function goOn(runId: string): Promise<void> {
    const shard = await shards.hold(runId);
    if (shard === null) return states.forget(runId);
    const { context } = shard;
    let state = states.current(runId, shard) ?? (await states.load(runId, shard));
    while (state !== null && !queue.stopped) {
      const { track, terms } = state;
      if (track.done) {
        states.forget(runId);
        return endFinishedRun(context, runId);
      }
      if (terms === null) return;
      const rules = now() < state.graceUntil ? withGracePeriod(state.rules) : state.rules;
      const wave = nextWave(rules, track.picture(isConnected, now()));
      if (wave.verdict === 'halt') {
        await haltRun(context, runId, wave.reason);
        state = await states.load(runId, shard);
        continue;
      }
      if (wave.queue.length + wave.report.length === 0) return;
      if (wave.isSmall && isGathering(state, () => queue.advance(runId))) return;
      state.gathering = null;
      try {
        const { turns, mustReload } = await giveTurns(context, terms, wave);
        track.turned(turns, isConnected);
        state = (mustReload ? null : states.current(runId, shard)) ?? (await states.load(runId, shard));
      } catch (error) {
        // The run was halted or canceled concurrently.
        ignoreFinished(error);
        state = await states.load(runId, shard);
      }
    }
  }

  const unsubscribe = context.bus.subscribe((hint, source) => {
    if (hint.type === 'operation_ended' && hint.run_id !== null) {
      states.operationEnded(hint.run_id, hint);
      queue.advanceLater(hint.run_id, source === 'own' ? 0 : gatherOthersMs);
    } else if (hint.type === 'run_changed') {
      states.changed(hint.run_id);
      void queue.advance(hint.run_id);
    }
  });

  async function lookAfter(runId: string): Promise<void> {
    const shard = await shards.hold(runId);
    if (shard === null) return states.forget(runId);
    const { context } = shard;
    const known = states.current(runId, shard);
    const isFresh = known?.moved && known.inGracePeriod === now() < known.graceUntil;
    const state = isFresh ? known : await states.load(runId, shard);
    if (state === null) return;
    state.moved = false;
    await giveUpAbsent(context, state, now());
    await goOn(runId);
    // The last outcome may have been committed just before its process stopped, or its hint may have been lost.
    await endFinishedRun(context, runId);
  }

  return {
    advance: (runId) => queue.advance(runId),
    begin(runId) {
      states.markStarted(runId);
      shards.announce(runId);
      return queue.advance(runId);
    },
    async sweep() {
      await shards.settle();
      for (const { run_id } of await db.all(openRuns, {})) {
        if (queue.stopped) return;
        // If the run was stopped concurrently, the next pass detects it.
        await queue.exclusively(run_id, () => whileHeld(run_id, () => lookAfter(run_id).catch(ignoreFinished)));
      }
    },
    followOthers: async () => (await progress.read()).forEach((runId) => void queue.advance(runId)),
    handOver: () => shards.handOver(),
    async stop() {
      unsubscribe();
      await queue.stop();
      await shards.release();
    },
  };
}

/**
 * Reports whether a small wave must still wait. The first call starts the wait; when it ends, `advance` continues the
 * run.
 */
function isGathering(state: RunState, advance: () => Promise<void>): boolean {
  if (state.gathering === null) {
    const gathering = { over: false };
    state.gathering = gathering;
    setTimeout(() => {
      gathering.over = true;
      void advance();
    }, gatherMs).unref();
  }
  return !state.gathering.over;
}

/** Ends the turns of agents that have been disconnected for too long. @param now Unix seconds */
async function giveUpAbsent(context: Context, { track, terms, rules }: RunState, now: number): Promise<void> {
  const isConnected = (nodeId: string) => context.presence.isConnected(nodeId);
  const absent = track.look(isConnected, now, absentSecs);
  if (terms === null) return;
  if (terms.offline === 'report')
    await Promise.all(absent.map((nodeId) => endUnsent(context, nodeId, terms.runId, track)));
  const isOver = now >= terms.startedAt + terms.ttl;
  if (!isOver || rules.absent !== 'hold') return;
  const late = track.waitingIds().filter((nodeId) => !isConnected(nodeId));
  if (late.length > 0) track.turned(await expireTurns(context, terms, late), isConnected);
}

/** Ends a disconnected agent's undispatched operation if the run reports absent agents. */
async function endUnsent(context: Context, nodeId: string, runId: string, track: RunTrack): Promise<void> {
  const error = 'the agent is offline';
  const ending = { status: 'failed', error, summary: null, startedAt: null } as const;
  const operationId = track.operationOf(nodeId);
  const operation = operationId === null ? null : await context.db.get(operationById, { operation_id: operationId });
  if (!operation || operation.dispatched_at !== null || operation.status !== 'queued') return;
  const label = await agentLabel(context, nodeId);
  const statements = endStatements(context, { ...operation, run_id: runId }, ending, systemActor, label, true);
  try {
    await context.db.write({ name: 'runs/end absent', statements });
    announceEnd(context, operation, 'failed');
  } catch (failure) {
    ignoreFinished(failure);
  }
}
