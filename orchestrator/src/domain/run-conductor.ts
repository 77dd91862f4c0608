import { operationById } from '../store/operations.ts';
import { openRuns, runBasis, runById, trackedResults } from '../store/runs.ts';
import { agentLabel } from './agent-label.ts';
import { type Context, seconds, systemActor } from './context.ts';
import type { ModuleDocuments } from './modules.ts';
import { announceEnd, endStatements, ignoreFinished } from './operation-end.ts';
import { optionsIn, type RunTerms, rulesOf, termsOf } from './run-basis.ts';
import { haltRun, settleRun } from './run-end.ts';
import { RunTrack } from './run-track.ts';
import { expireTurns, giveTurns } from './run-turns.ts';
import { nextWave } from './run-waves.ts';

/**
 * Sees runs through: as operations end, the next agents get their turn, until the last outcome is there. What is
 * remembered here only saves looks at the rows; after a restart runs go on where the rows say they are.
 */
export interface RunConductor {
  /** Goes on with a run. Never fails: what does not work now is tried again by the sweep. */
  advance(runId: string): Promise<void>;
  /** Finds what a lost hint would have told, who came back and who went away. Now and then, and at start. */
  sweep(): Promise<void>;
  stop(): Promise<void>;
}

export interface ConductorOptions {
  /** Agents that have an operation of one run at one time, unless the run says fewer. */
  maxConcurrent: number;
}

/** After a start nobody is told of as not connected for so long: they are still on their way back. In seconds. */
const returnSecs = 60;
/** Who was not sent its operation and is away for longer is told of as not connected, where that is wanted. In seconds. */
const absentSecs = 60;

interface Going {
  /** Null when the run was stopped, or was begun by an earlier release: then only its end is waited for. */
  readonly terms: RunTerms | null;
  track: RunTrack;
  /** Nobody is told of as not connected before. Unix seconds. */
  readonly patientUntil: number;
  /** Something happened since the last sweep. */
  moved: boolean;
}

export function createRunConductor(
  context: Context,
  documents: ModuleDocuments,
  { maxConcurrent }: ConductorOptions,
): RunConductor {
  const { db, presence, log } = context;
  const going = new Map<string, Going>();
  const busy = new Map<string, Promise<void>>();
  /** Runs that are to be looked at again once the look under way is over. */
  const again = new Set<string>();
  const due = new Set<string>();
  let stopped = false;
  const isConnected = (nodeId: string) => presence.isConnected(nodeId);
  const now = () => seconds(context.now());

  /** @param patientUntil of a run that is not known yet */
  async function load(runId: string, patientUntil: number): Promise<Going | null> {
    const row = await db.get(runById, { run_id: runId });
    const known = going.get(runId);
    if (!row || row.finished_at !== null) {
      going.delete(runId);
      return null;
    }
    const basis = row.status === 'running' ? await db.get(runBasis, { run_id: runId }) : undefined;
    const rules = rulesOf(optionsIn(row.options), maxConcurrent);
    const ends: Parameters<RunTrack['ended']>[] = [];
    const unsubscribe = context.bus.subscribe((hint) => {
      if (hint.type === 'operation_ended' && hint.run_id === runId)
        ends.push([hint.node_id, hint.operation_id, hint.status]);
    });
    const rows = await db.all(trackedResults, { run_id: runId }).finally(unsubscribe);
    const track = new RunTrack(runId, rules, rows, isConnected);
    if (known) track.inherit(known.track);
    // What ended while the rows were read may be in them or not.
    for (const end of ends) track.ended(...end);
    const entry: Going = {
      terms: basis ? (known?.terms ?? termsOf(row, basis.basis)) : null,
      track,
      patientUntil: known?.patientUntil ?? patientUntil,
      moved: true,
    };
    going.set(runId, entry);
    return entry;
  }

  async function goOn(runId: string): Promise<void> {
    let entry = going.get(runId) ?? (await load(runId, 0));
    while (entry !== null && !stopped) {
      const { track, terms } = entry;
      if (track.done) {
        going.delete(runId);
        return settleRun(context, runId);
      }
      if (terms === null) return;
      const rules =
        track.rules.absent === 'report' && now() < entry.patientUntil
          ? { ...track.rules, absent: 'hold' as const }
          : track.rules;
      const wave = nextWave(rules, track.picture(isConnected, now()));
      if (wave.verdict === 'halt') {
        await haltRun(context, runId, wave.reason);
        entry = await load(runId, 0);
        continue;
      }
      if (wave.queue.length + wave.report.length === 0) return;
      try {
        const { turns, surprised } = await giveTurns(context, documents, terms, wave);
        track.turned(turns, isConnected);
        if (surprised) entry = await load(runId, 0);
      } catch (error) {
        // Halted or cancelled in this moment.
        ignoreFinished(error);
        entry = await load(runId, 0);
      }
    }
  }

  function advance(runId: string): Promise<void> {
    const under = busy.get(runId);
    if (under) {
      again.add(runId);
      return under;
    }
    const work = (async () => {
      do {
        again.delete(runId);
        await goOn(runId);
      } while (again.has(runId) && !stopped);
    })()
      .catch((error: unknown) => log.error({ err: error, run_id: runId }, 'a run could not go on; it is tried again'))
      .finally(() => {
        busy.delete(runId);
        again.delete(runId);
      });
    busy.set(runId, work);
    return work;
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
      const { run_id } = hint;
      // The rows are looked at once whoever looks now is through.
      void (busy.get(run_id) ?? Promise.resolve())
        .then(() => load(run_id, 0))
        .then(() => advance(run_id))
        .catch((error: unknown) =>
          log.error({ err: error, run_id }, 'a run could not be looked at; it is tried again'),
        );
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
    await busy.get(runId);
    const known = going.get(runId);
    const entry = known?.moved ? known : await load(runId, known ? 0 : now() + returnSecs);
    if (entry === null) return;
    entry.moved = false;
    const { track, terms } = entry;
    const gone = track.look(isConnected, now(), absentSecs);
    if (terms !== null) {
      if (terms.offline === 'report' && gone.length > 0) await endUnsent(gone, runId, entry);
      const over = now() >= terms.startedAt + terms.ttl;
      if (over && track.rules.absent === 'hold') {
        const late = track.waitingIds().filter((nodeId) => !isConnected(nodeId));
        if (late.length > 0) track.turned(await expireTurns(context, terms, late), isConnected);
      }
    }
    await advance(runId);
  }

  return {
    advance,
    async sweep() {
      for (const { run_id } of await db.all(openRuns, {})) {
        if (stopped) return;
        await lookAfter(run_id).catch((error: unknown) => {
          // Stopped in this moment: the next look sees it.
          ignoreFinished(error);
        });
      }
    },
    async stop() {
      stopped = true;
      unsubscribe();
      await Promise.all(busy.values());
    },
  };
}
