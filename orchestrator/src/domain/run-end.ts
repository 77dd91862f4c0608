import { anyRunResultOpen, endRunIfDone, openRuns, runById } from '../store/runs.ts';
import { statement } from '../store/unit.ts';
import { audited } from './audit.ts';
import { type Context, seconds, systemActor } from './context.ts';
import { ignoreFinished } from './operation-end.ts';

/** A run ends with the last of its operations. */

/** Ends a run once nothing of it is open. Safe to call at any time, any number of times. */
export async function settleRun(context: Context, runId: string): Promise<void> {
  const { db } = context;
  if (await db.get(anyRunResultOpen, { run_id: runId })) return;
  const run = await db.get(runById, { run_id: runId });
  if (run?.status !== 'running') return;
  const end = { run_id: runId, now: seconds(context.now()) };
  try {
    await db.write({
      name: 'runs/end',
      statements: [
        // A second caller at the same moment changes nothing and must not be recorded.
        statement(endRunIfDone, end, { expect: 'changed', else: 'operation_finished' }),
        audited(context, {
          type: 'run.ended',
          actor: systemActor,
          target: { type: 'run', id: runId, name: run.assignment ?? '' },
          summary: `${run.kind} of ${run.assignment ?? 'agents'} has ended`,
        }),
      ],
    });
  } catch (error) {
    ignoreFinished(error);
  }
  context.bus.publish({ type: 'run_ended', run_id: runId });
}

/** Ends runs whose last outcome came just before a process died, or whose hint was lost. */
export async function settleRuns(context: Context): Promise<void> {
  for (const { run_id } of await context.db.all(openRuns, {})) await settleRun(context, run_id);
}

/**
 * Looks after runs as their operations end: once for all that end in one turn of the loop, since a thousand outcomes
 * may be committed together.
 * @returns ends it
 */
export function followRuns(context: Context): () => void {
  const due = new Set<string>();
  const settle = async () => {
    const runs = [...due];
    due.clear();
    for (const run of runs) await settleRun(context, run);
  };
  return context.bus.subscribe((hint) => {
    if (hint.type !== 'operation_ended' || hint.run_id === null) return;
    if (due.size === 0)
      setImmediate(() => {
        settle().catch((error: unknown) => context.log.error({ err: error }, 'a run could not be ended; tried again'));
      });
    due.add(hint.run_id);
  });
}
