import { operationById } from '../../store/queries/operations.ts';
import { openRuns, runBasis, runById, trackedResults } from '../../store/queries/runs.ts';
import type { ModuleDocuments } from '../modules/modules.ts';
import { announceEnd, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { optionsIn, type RunTerms, rulesOf, termsOf } from './run-basis.ts';
import { haltRun, settleRun } from './run-end.ts';
import { RunTrack } from './run-track.ts';
import { expireTurns, giveTurns } from './run-turns.ts';
import { nextWave, type WaveRules } from './run-waves.ts';

/**
 * Sees runs through: as operations end, the next agents get their turn, until the last outcome is there. What is
 * remembered here only saves looks at the rows; after a restart runs go on where the rows say they are.
 */
export interface RunConductor {
  /** Goes on with a run. Never fails: what does not work now is tried again by the sweep. */
  advance(runId: string): Promise<void>;
  /** The same with one that was just asked for: who is away now is away. */
  begin(runId: string): Promise<void>;
  /** Finds what a lost hint would have told, who came back and who went away. Now and then, and at start. */
  sweep(): Promise<void>;
  stop(): Promise<void>;
}

export interface ConductorOptions {
  /** Agents that have an operation of one run at one time, unless the run says fewer. */
  maxConcurrent: number;
}

/** After a start nobody counts as away for so long: they are still on their way back. In seconds. */
const returnSecs = 60;
/** Who was not sent its operation and is away for longer is told of as not connected, where that is wanted. In seconds. */
const absentSecs = 60;

interface Going {
  /** Null when the run was stopped, or was begun by an earlier release: then only its end is waited for. */
  readonly terms: RunTerms | null;
  track: RunTrack;
  readonly rules: WaveRules;
  /** Nobody counts as away before. Unix seconds. */
  readonly patientUntil: number;
  /** The track was built before that time: whoever has an operation takes a place in it. */
  readonly patient: boolean;
  /** Something happened since the last sweep. */
  moved: boolean;
}

/** Nobody is told of as not connected, and nobody gets an operation without a place. */
const patiently = (rules: WaveRules): WaveRules => ({ ...rules, absent: 'hold' });

export function createRunConductor(
  context: Context,
  documents: ModuleDocuments,
  { maxConcurrent }: ConductorOptions,
): RunConductor {
  const { db, presence, log } = context;
  const going = new Map<string, Going>();
  /** One look at a run at a time: what two read would be old for each other. */
  const busy = new Map<string, Promise<void>>();
  /** Runs whose rows somebody else has changed. */
  const changed = new Set<string>();
  /** Runs that this process began. */
  const begun = new Set<string>();
  /** Runs that are to be looked at again once the look under way is over. */
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
    // What ended while the rows were read may be in them or not.
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
        const { turns, surprised } = await giveTurns(context, documents, terms, wave);
        track.turned(turns, isConnected);
        if (surprised) entry = await load(runId);
      } catch (error) {
        // Halted or cancelled in this moment.
        ignoreFinished(error);
        entry = await load(runId);
      }
    }
  }

  /** Does something with a run while nobody else does, and goes on with it as long as there is reason to. Never fails. */
  function start(runId: string, first: () => Promise<void>): Promise<void> {
    const work = (async () => {
      await first();
      while (again.delete(runId) && !stopped) await goOn(runId);
    })()
      .catch((error: unknown) => log.error({ err: error, run_id: runId }, 'a run could not go on; it is tried again'))
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

  /** Once for all that ended in one turn of the loop, since a thousand outcomes may be committed together. */
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

  /** Ends what was queued for agents that have gone away, where that is to be told of. */
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
        // Stopped in this moment: the next look sees it.
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
