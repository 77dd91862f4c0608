import { MusterError } from '@muster/protocol';
import type { Run, RunOutcomes } from '@muster/protocol/http';
import {
  anyRunResultOpen,
  endRunIfDone,
  endUnsent,
  endUnsentResults,
  endWaiting,
  openRun,
  requestCancels,
  runById,
  stopRun,
} from '../../store/queries/runs.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { announceEnd, ignoreFinished } from '../operation-end/operation-end.ts';
import { type Actor, type Context, seconds, systemActor } from '../shared/context.ts';
import { countOutcomes, noOutcomes } from './run-outcomes.ts';

/** Finishes runs: after the last operation, when the run is halted, or when it is canceled. */

/** Finishes a run if none of its operations is open. Repeated calls have no effect. */
export async function endFinishedRun(context: Context, runId: string): Promise<void> {
  const { db } = context;
  if (await db.get(anyRunResultOpen, { run_id: runId })) return;
  const run = await db.get(runById, { run_id: runId });
  if (!run || run.finished_at !== null) return;
  // No outcome can change anymore, because no operation is open.
  const { succeeded, failed, cancelled, skipped } = (await countOutcomes(context, [runId])).get(runId) ?? noOutcomes;
  const end = { run_id: runId, now: seconds(context.now()), succeeded, failed, cancelled, skipped };
  try {
    await db.write({
      name: 'runs/end',
      statements: [
        // Only one of several concurrent callers finishes the run and records the event.
        statement(endRunIfDone, end, { expect: 'changed', else: 'operation_finished' }),
        audited(context, {
          type: 'run.ended',
          actor: systemActor,
          target: { type: 'run', id: runId, name: run.assignment ?? '' },
          summary: endText(run, { succeeded, failed, cancelled, skipped }),
        }),
      ],
    });
  } catch (error) {
    ignoreFinished(error);
  }
  context.bus.publish({ type: 'run_ended', run_id: runId });
}

/** Describes the outcome of a run, for example `apply of web failed on 1 of 20 agents`. */
export function endText(
  { kind, assignment, status }: Pick<Run, 'assignment' | 'status'> & { readonly kind: string },
  { succeeded, failed, cancelled, skipped }: Pick<RunOutcomes, 'succeeded' | 'failed' | 'cancelled' | 'skipped'>,
): string {
  const subject = `${kind} of ${assignment ?? 'selected agents'}`;
  const total = succeeded + failed + cancelled + skipped;
  const agents = `${total} ${total === 1 ? 'agent' : 'agents'}`;
  if (status !== 'running')
    return `${subject} ended after it was ${status === 'halted' ? 'halted' : 'canceled'}: succeeded on ${succeeded} of ${agents}`;
  if (failed > 0) return `${subject} failed on ${failed} of ${agents}`;
  return succeeded === total
    ? `${subject} succeeded on ${agents}`
    : `${subject} succeeded on ${succeeded} of ${agents}`;
}

/** Halts a run permanently: operations in progress continue, but no further agent starts. */
export async function haltRun(context: Context, runId: string, reason: string): Promise<void> {
  const run = await context.db.get(runById, { run_id: runId });
  if (run?.status !== 'running') return;
  try {
    await stop(context, runId, `not tried: the run was halted, because ${reason}`, [
      statement(stopRun, { run_id: runId, status: 'halted' }, { expect: 'changed', else: 'operation_finished' }),
      audited(context, {
        type: 'run.halted',
        actor: systemActor,
        target: { type: 'run', id: runId, name: run.assignment ?? '' },
        summary: `${run.kind} of ${run.assignment ?? 'selected agents'} was halted: ${reason}`,
        metadata: { reason, requested_by: run.requested_by },
      }),
    ]);
  } catch (error) {
    ignoreFinished(error);
  }
}

/**
 * Cancels the unfinished part of a run: waiting agents do not start, and running operations receive cancellation
 * requests.
 * @throws MusterError run_not_found, run_finished
 */
export async function cancelRun(context: Context, actor: Actor, runId: string): Promise<void> {
  const run = await context.db.get(runById, { run_id: runId });
  if (!run) throw new MusterError('run_not_found', `there is no run ${JSON.stringify(runId.slice(0, 64))}`);
  if (run.finished_at !== null) throw new MusterError('run_finished', `the run has ${run.status}`);
  const requests = statement(requestCancels, { run_id: runId, now: seconds(context.now()) });
  const result = await stop(context, runId, `canceled by ${actor.name}`, [
    statement(openRun, { run_id: runId }, { expect: 'row', else: 'run_finished' }),
    // A halted run stays halted.
    statement(stopRun, { run_id: runId, status: 'cancelled' }),
    requests,
    audited(context, {
      type: 'run.cancelled',
      actor,
      target: { type: 'run', id: runId, name: run.assignment ?? '' },
      summary: `${run.kind} of ${run.assignment ?? 'selected agents'} canceled`,
    }),
  ]);
  for (const { node_id, operation_id } of result.of(requests).rows)
    context.bus.publish({ type: 'cancel', node_id, operation_id });
  await endFinishedRun(context, runId);
}

/** Ends all undispatched turns in a run, in one transaction with `statements`. */
async function stop(context: Context, runId: string, error: string, statements: readonly Statement[]) {
  const ending = { run_id: runId, status: 'cancelled', error } as const;
  const unsent = statement(endUnsent, { ...ending, finished_at: seconds(context.now()) });
  const result = await context.db.write({
    name: 'runs/stop',
    statements: [...statements, statement(endWaiting, ending), statement(endUnsentResults, ending), unsent],
  });
  context.bus.publish({ type: 'run_changed', run_id: runId });
  for (const { operation_id, node_id } of result.of(unsent).rows)
    announceEnd(context, { operation_id, node_id, run_id: runId }, 'cancelled');
  return result;
}
