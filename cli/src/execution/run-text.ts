import type { Run } from '@muster/protocol/http';
import { operationErrorText } from '../../../client/src/operation-error.ts';
import { runOutcomeOf, runOutcomeOrder } from '../../../client/src/run-outcomes.ts';
import { statusText } from '../../../client/src/status-text.ts';
import type { Output } from '../context/output.ts';
import { summaryText } from '../text/plan-text.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { ago, type Colors, counted, duration, listedId } from '../text/style.ts';

/** Returns the color for a status: green for success, red for failure, none if it is still running. */
export const paintedBy = (status: string, color: Colors): ((text: string) => string) =>
  status === 'succeeded' ? color.green : status === 'running' || status === 'queued' ? (text) => text : color.red;

/** Returns the status of an agent in a run, or `skipped` if the run ended before the agent started. */
export const outcomeWord = (result: Run['results'][number]): string =>
  runOutcomeOf(result) === 'skipped' ? 'skipped' : statusText(result.status);

/** Counts the resources that a run removes. */
export const removedIn = ({ results }: Pick<Run, 'results'>): number =>
  results.reduce((sum, { summary }) => sum + (summary?.removed ?? 0), 0);

/** Reports whether an apply would change anything on one of the agents in the run. */
export const runChanges = ({ results }: Pick<Run, 'results'>): boolean =>
  results.some(({ summary }) => summary !== null && summary.changed + summary.removed > 0);

/** Returns the results, failures first, then by name. */
export const worstFirst = (results: Run['results']): Run['results'] =>
  results.toSorted(
    (one, other) =>
      runOutcomeOrder.indexOf(runOutcomeOf(one)) - runOutcomeOrder.indexOf(runOutcomeOf(other)) ||
      byName.compare(one.name ?? one.node_id, other.name ?? other.node_id),
  );
const byName = new Intl.Collator('en', { numeric: true });

/** The error of an agent that was skipped because the run was halted. */
const notTried = /^not tried: the run was halted, because (?<reason>.+)$/s;

/** Returns why a halted run was halted and how many agents it skipped; null for other runs. */
export function haltedLine({ status, results }: Run): string | null {
  const skipped = results.filter((result) => runOutcomeOf(result) === 'skipped');
  const reason = notTried.exec(skipped[0]?.error ?? '')?.groups?.reason;
  if (status !== 'halted' || reason === undefined) return null;
  return `Halted because ${sanitiseLine(reason)}. ${counted(skipped.length, 'agent was', 'agents were')} skipped.`;
}

/** Prints a run with one line per agent, failures first. */
export function printRun(run: Run, out: Output): void {
  const { color, now } = out.style;
  const { assignment, kind, status, started_at, finished_at, results } = run;
  const of = assignment === null ? '' : ` of ${color.bold(sanitiseLine(assignment))}`;
  const took = finished_at === null ? '' : `, took ${duration(finished_at - started_at)}`;
  out.print(`${kind}${of} on ${counted(results.length, 'agent')}: ${paintedBy(status, color)(statusText(status))}`);
  out.print(color.dim(`run ${sanitiseLine(run.run_id)}, started ${ago(started_at, now)}${took}`));
  const halted = haltedLine(run);
  if (halted !== null) out.print(color.red(halted));
  if (results.length === 0) return;
  out.print('');
  out.table<Run['results'][number]>(
    [
      { heading: 'AGENT', text: ({ name, node_id }) => name ?? node_id.slice(0, 12), flexible: true },
      {
        heading: 'STATUS',
        text: outcomeWord,
        paint: (text, row) => paintedBy(row.status, color)(text),
      },
      { heading: 'OPERATION', text: ({ operation_id }) => operation_id && listedId(operation_id, out.style) },
      {
        heading: 'RESOURCES',
        text: ({ error, summary, status }) =>
          error !== null && !(halted !== null && notTried.test(error))
            ? operationErrorText(error)
            : summary && summaryText({ kind, summary, status }),
        flexible: true,
      },
    ],
    worstFirst(results),
  );
}
