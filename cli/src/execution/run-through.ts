import { hasEnded } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { cancelRun, getOperation, getRun, type Operation, type Run } from '@muster/protocol/http';
import type { Context } from '../context/context.ts';
import { type Exit, exits } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { type FanOut, outcomeLine, runLines } from './apply-view.ts';
import { inTurns } from './each.ts';
import { follow } from './follow.ts';

/** Maximum number of running agents whose operations are polled. More do not fit on a screen. */
const watchedAgents = 8;

/**
 * Waits until a run has finished, and shows the progress of each agent. On an interrupt, prints the commands that show
 * and cancel the run.
 */
export async function seeRunThrough(
  context: Context,
  call: Client,
  work: { doing: string; fanOut?: FanOut; begin: () => Promise<Run> },
): Promise<Run> {
  const { out } = context;
  const { doing, fanOut = {}, begin } = work;
  const at = new Map<string, Operation>();
  const reported = new Set<string>();
  const isSeen = out.live().isSeen;
  const look = async ({ run_id }: Run): Promise<Run> => {
    const run = await call(getRun, { params: { run_id } });
    const busy = isSeen ? run.results.filter(({ status }) => status === 'running').slice(0, watchedAgents) : [];
    await inTurns(busy, watchedAgents, async ({ node_id, operation_id }) => {
      if (operation_id !== null) at.set(node_id, await call(getOperation, { params: { operation_id } }));
    });
    return run;
  };
  let isApply = true;
  return await follow<Run>(context, {
    begin: async () => {
      const run = await begin();
      isApply = run.kind === 'apply';
      return run;
    },
    look,
    hasEnded: (run) => run.finished_at !== null,
    draw: (run, moment) => runLines({ doing, run, fanOut, at }, moment, out.noteColor),
    changeLines: ({ kind, results }) =>
      results
        // Omits successful plans, because the summary at the end contains them.
        .filter(
          ({ node_id, status }) =>
            hasEnded(status) && !reported.has(node_id) && (kind === 'apply' || status !== 'succeeded'),
        )
        .map((result) => {
          reported.add(result.node_id);
          return outcomeLine(result, kind, out.noteColor);
        }),
    see: (run) => `muster runs ${run === null ? 'list' : `show ${sanitiseLine(run.run_id)}`}`,
    end: ({ run_id }) => `muster runs cancel ${sanitiseLine(run_id)}`,
    get cancel() {
      return isApply ? async ({ run_id }: Run) => void (await call(cancelRun, { params: { run_id } })) : null;
    },
  });
}

/** Returns the exit code of a run: success, failure, or partial failure if some agents succeeded. */
export function exitOfRun({ status, results }: Run): Exit {
  if (status === 'succeeded' || status === 'running') return exits.done;
  return results.some((result) => result.status === 'succeeded') ? exits.partly : exits.failed;
}
