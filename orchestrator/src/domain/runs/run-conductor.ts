import { operationById } from '../../store/queries/operations.ts';
import { openRuns, runBasis, runById, trackedResults } from '../../store/queries/runs.ts';
import { announceEnd, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { optionsIn, type RunTerms, rulesOf, termsOf } from './run-basis.ts';
import { haltRun, settleRun } from './run-end.ts';
import { RunTrack } from './run-track.ts';
import { expireTurns, giveTurns } from './run-turns.ts';
import { nextWave, type WaveRules } from './run-waves.ts';

/**
 * Drives runs: as operations end, the next agents get their turn, until the last outcome is there. The state in memory
 * only saves queries; after a restart a run continues from its rows.
 */
export interface RunConductor {
  /** Continues a run. Never rejects: the sweep retries failures. */
  advance(runId: string): Promise<void>;
  /** Begins a new run. Agents that are away now count as away. */
  begin(runId: string): Promise<void>;
  /** Catches lost hints and agents that came or went. Runs periodically and at start. */
  sweep(): Promise<void>;
  stop(): Promise<void>;
}

export interface ConductorOptions {
  /** Maximum agents of a run with an operation at one time, unless the run sets a lower number. */
  maxConcurrent: number;
}

/** Grace period after a start in seconds: no agent counts as away, because agents are still reconnecting. */
const returnSecs = 60;
/**
 * How long an agent without a dispatched operation may be away before it is reported as not connected, where the run asks for
 * that. In seconds.
 */
const absentSecs = 60;

interface Going {
  /** Null when the run was stopped, or was begun by an earlier release: the conductor only waits for its end. */
  readonly terms: RunTerms | null;
  track: RunTrack;
  readonly rules: WaveRules;
  /** End of the grace period in Unix seconds. */
  readonly patientUntil: number;
  /** The track was built during the grace period: every agent with an operation takes a place. */
  readonly patient: boolean;
  /** Something changed since the last sweep. */
  moved: boolean;
}

/** Rules for the grace period: hold absent agents instead of reporting them as not connected. */
const patiently = (rules: WaveRules): WaveRules => ({ ...rules, absent: 'hold' });

export function createRunConductor(context: Context, { maxConcurrent }: ConductorOptions): RunConductor {
  const { db, presence, log } = context;
  const going = new Map<string, Going>();
  /** Serializes work on each run: concurrent reads would be stale for each other. */
  const busy = new Map<string, Promise<void>>();
  /** Runs whose rows something else has changed. */
  const changed = new Set<string>();
  /** Runs that this process began. */
  const begun = new Set<string>();
  /** Runs to process again after the current pass. */
  const again = new Set<string>();
  const due = new Set<string>();
  let stopped = false;
  const isConnected = (nodeId: string) => presence.isConnected(nodeId);
  const now = () => seconds(context.now());
  const allBackAt = now() + returnSecs;

  async function load(runId: string): Promise<Going | null> {
    changed.delete(runId);
    const row = await db.get(runById, { run_id: runId });
    const known = going.get(runId);
    if (!row || row.finished_at !== null) {
      going.delete(runId);
      begun.delete(runId);
      return null;
    }
    const patientUntil = known?.patientUntil ?? (begun.delete(runId) ? 0 : allBackAt);
    const patient = now() < patientUntil;
    const basis = row.status === 'running' ? await db.get(runBasis, { run_id: runId }) : undefined;
    const rules = rulesOf(optionsIn(row.options), maxConcurrent);
    const ends: Parameters<RunTrack['ended']>[] = [];
    const unsubscribe = context.bus.subscribe((hint) => {
      if (hint.type === 'operation_ended' && hint.run_id === runId)
        ends.push([hint.node_id, hint.operation_id, hint.status]);
    });
    const rows = await db.all(trackedResults, { run_id: runId }).finally(unsubscribe);
    const track = new RunTrack(runId, patient ? patiently(rules) : rules, rows, isConnected);
    if (known) track.inherit(known.track);
    // Ends that arrived during the read may be missing from the rows.
    for (const end of ends) track.ended(...end);
    const entry: Going = {
      terms: basis ? (known?.terms ?? termsOf(row, basis.basis)) : null,
      track,
      rules,
      patientUntil,
      patient,
      moved: true,
    };
    going.set(runId, entry);
    return entry;
  }

  async function goOn(runId: string): Promise<void> {
    let entry = changed.has(runId) ? null : (going.get(runId) ?? null);
    entry ??= await load(runId);
    while (entry !== null && !stopped) {
      const { track, terms } = entry;
      if (track.done) {
        going.delete(runId);
        return settleRun(context, runId);
      }
      if (terms === null) return;
      const rules = now() < entry.patientUntil ? patiently(entry.rules) : entry.rules;
      const wave = nextWave(rules, track.picture(isConnected, now()));
      if (wave.verdict === 'halt') {
        await haltRun(context, runId, wave.reason);
        entry = await load(runId);
        continue;
      }
      if (wave.queue.length + wave.report.length === 0) return;
      try {
        const { turns, surprised } = await giveTurns(context, terms, wave);
        track.turned(turns, isConnected);
        if (surprised) entry = await load(runId);
      } catch (error) {
        // The run was halted or cancelled concurrently.
        ignoreFinished(error);
        entry = await load(runId);
      }
    }
  }

  /** Runs `first` exclusively for a run, then continues the run as long as there is reason to. Never rejects. */
  function start(runId: string, first: () => Promise<void>): Promise<void> {
    const work = (async () => {
      await first();
      while (again.delete(runId) && !stopped) await goOn(runId);
    })()
      .catch((error: unknown) => log.error({ err: error, run_id: runId }, 'failed to continue run; will retry'))
      .finally(() => {
        busy.delete(runId);
        again.delete(runId);
      });
    busy.set(runId, work);
    return work;
  }

  function advance(runId: string): Promise<void> {
    const under = busy.get(runId);
    if (!under) return start(runId, () => goOn(runId));
    again.add(runId);
    return under;
  }

  /** Batches the ends of one turn of the event loop: a thousand outcomes may be committed together. */
  function later(runId: string): void {
    if (due.size === 0)
      setImmediate(() => {
        const runs = [...due];
        due.clear();
        for (const run of runs) if (!stopped) void advance(run);
      });
    due.add(runId);
  }

  const unsubscribe = context.bus.subscribe((hint) => {
    if (hint.type === 'operation_ended' && hint.run_id !== null) {
      const entry = going.get(hint.run_id);
      if (entry) {
        entry.track.ended(hint.node_id, hint.operation_id, hint.status);
        entry.moved = true;
      }
      later(hint.run_id);
    } else if (hint.type === 'run_changed') {
      changed.add(hint.run_id);
      void advance(hint.run_id);
    }
  });

  /** Ends operations that were queued for agents that have gone away, where the run reports absent agents. */
  async function endUnsent(nodeIds: readonly string[], runId: string, entry: Going): Promise<void> {
    const error = 'the agent is not connected';
    const ending = { status: 'failed', error, summary: null, startedAt: null } as const;
    await Promise.all(
      nodeIds.map(async (nodeId) => {
        const operationId = entry.track.operationOf(nodeId);
        const operation = operationId === null ? null : await db.get(operationById, { operation_id: operationId });
        if (!operation || operation.dispatched_at !== null || operation.status !== 'queued') return;
        const label = await agentLabel(context, nodeId);
        const statements = endStatements(context, { ...operation, run_id: runId }, ending, systemActor, label, true);
        try {
          await db.write({ name: 'runs/end absent', statements });
          announceEnd(context, operation, 'failed');
        } catch (failure) {
          ignoreFinished(failure);
        }
      }),
    );
  }

  async function lookAfter(runId: string): Promise<void> {
    const known = going.get(runId);
    const fresh = known?.moved && known.patient === now() < known.patientUntil;
    const entry = fresh ? known : await load(runId);
    if (entry === null) return;
    entry.moved = false;
    const { track, terms } = entry;
    const gone = track.look(isConnected, now(), absentSecs);
    if (terms !== null) {
      if (terms.offline === 'report' && gone.length > 0) await endUnsent(gone, runId, entry);
      const over = now() >= terms.startedAt + terms.ttl;
      if (over && entry.rules.absent === 'hold') {
        const late = track.waitingIds().filter((nodeId) => !isConnected(nodeId));
        if (late.length > 0) track.turned(await expireTurns(context, terms, late), isConnected);
      }
    }
    await goOn(runId);
  }

  return {
    advance,
    begin(runId) {
      begun.add(runId);
      return advance(runId);
    },
    async sweep() {
      for (const { run_id } of await db.all(openRuns, {})) {
        while (busy.has(run_id)) await busy.get(run_id);
        if (stopped) return;
        // The run was stopped concurrently; the next pass sees it.
        await start(run_id, () => lookAfter(run_id).catch(ignoreFinished));
      }
    },
    async stop() {
      stopped = true;
      unsubscribe();
      await Promise.all(busy.values());
    },
  };
}
