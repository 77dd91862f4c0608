import { hasEnded, type ResourceResult } from '@muster/protocol';
import type { Operation, Run } from '@muster/protocol/http';
import { operationErrorText } from '../../../client/src/operation-error.ts';
import { stepLine, summaryText } from '../text/plan-text.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { type Colors, counted, duration } from '../text/style.ts';
import type { Moment } from './follow.ts';
import { outcomeWord, paintedBy } from './run-text.ts';

/** Pure functions that render the progress of an operation or run. */

function bar(done: number, total: number, width: number, color: Colors): string {
  const full = total === 0 ? 0 : Math.round((Math.min(done, total) / total) * width);
  return color.green('█'.repeat(full)) + color.dim('░'.repeat(width - full));
}

const keyOf = ({ module, id, type, identity }: ResourceResult): string => JSON.stringify([module, id, type, identity]);

export interface OperationView {
  agent: string;
  doing: string;
  operation: Operation | null;
  /** The plan that the operator confirmed; null if there is none. */
  plan: Operation | null;
  output: string;
}

/** Returns the lines for one agent: its progress, followed by finished, current, and upcoming resources. */
export function operationLines(view: OperationView, moment: Moment, color: Colors): string[] {
  const { agent, doing, operation, plan, output } = view;
  const { spinner, seconds, columns, rows } = moment;
  const results = operation?.resources ?? [];
  const total = plan?.resources.length ?? 0;
  const isWaiting = operation === null || operation.status === 'queued';
  const far = total === 0 ? (results.length === 0 ? '' : `${results.length} done`) : `${results.length} of ${total}`;
  const gauge = total === 0 || columns < 60 ? '' : ` ${bar(results.length, total, 20, color)}`;
  const head = `${color.cyan(spinner)} ${color.bold(sanitiseLine(agent))}: ${isWaiting ? 'waiting for other operations' : doing}${gauge} ${far} ${color.dim(duration(seconds))}`;
  const done = results.filter(({ status }) => status !== 'unchanged').map((result) => stepLine(result, color));
  const had = new Set(results.map(keyOf));
  const coming = (plan?.resources ?? []).filter((step) => step.status === 'would_change' && !had.has(keyOf(step)));
  const current = isWaiting ? undefined : coming[0];
  const rest = isWaiting ? coming : coming.slice(1);
  const now =
    current === undefined
      ? []
      : [`  ${color.cyan(spinner)} ${sanitiseLine(current.type)} ${color.bold(sanitiseLine(current.identity))}`];
  const outputLines = output === '' ? [] : [`      ${color.dim(output)}`];
  // Shows the most recently finished resources, the current one, and as many upcoming ones as fit.
  const freeRows = Math.max(1, rows - 3 - now.length - outputLines.length);
  const past = done.slice(-Math.max(1, freeRows - Math.min(rest.length, 3)));
  const left = Math.max(0, freeRows - past.length);
  const next = rest
    .slice(0, left)
    .map((step) => color.dim(`  · ${sanitiseLine(step.type)} ${sanitiseLine(step.identity)}`));
  const more =
    rest.length > next.length && next.length > 0 ? [color.dim(`    and ${rest.length - next.length} more`)] : [];
  return [head, ...past, ...now, ...outputLines, ...next, ...more];
}

/** The requested pacing of a run. */
export interface FanOut {
  canary?: number | undefined;
  batch?: number | string | undefined;
}

export interface RunView {
  doing: string;
  run: Run | null;
  fanOut: FanOut;
  /** Operations of running agents, by node ID. Contains only operations that are being polled. */
  at: ReadonlyMap<string, Operation>;
}

type Outcome = Run['results'][number];

export const outcomeName = ({ name, node_id }: Pick<Outcome, 'name' | 'node_id'>): string =>
  sanitiseLine(name ?? node_id.slice(0, 12));

/** Sorts results by name in natural order: `web-2` before `web-10`. */
export const byName = (results: readonly Outcome[]): Outcome[] =>
  results.toSorted((one, other) => collator.compare(outcomeName(one), outcomeName(other)));

const collator = new Intl.Collator('en', { numeric: true });

/** Counts the agents of a run by their status. */
export function countsOf(results: readonly Outcome[]) {
  const counts = { succeeded: 0, failed: 0, cancelled: 0, running: 0, waiting: 0, untried: 0 };
  for (const { status, operation_id } of results) {
    if (status === 'succeeded') counts.succeeded++;
    else if (status === 'running') counts.running++;
    else if (status === 'cancelled') counts[operation_id === null ? 'untried' : 'cancelled']++;
    else if (hasEnded(status)) counts.failed++;
    else counts.waiting++;
  }
  return counts;
}

/** Returns the line for an agent of a run that has finished. */
export function outcomeLine(result: Outcome, kind: Run['kind'], color: Colors): string {
  const { status, error, summary } = result;
  const symbol = status === 'succeeded' ? color.green('✓') : color.red('!');
  const outcome = summary === null ? '' : summaryText({ kind, summary, status });
  const detail = error === null ? outcome : operationErrorText(error);
  return `${symbol} ${color.bold(outcomeName(result))} ${paintedBy(status, color)(outcomeWord(result))}${detail === '' ? '' : `: ${sanitiseLine(detail)}`}`;
}

const newest = <T>(list: readonly T[], maxItems: number): readonly T[] => (maxItems <= 0 ? [] : list.slice(-maxItems));

/** Returns the lines for a run: its counts, the failed agents, and the progress of each running agent. */
export function runLines(view: RunView, moment: Moment, color: Colors): string[] {
  const { doing, run, fanOut } = view;
  const { spinner, seconds, columns, rows } = moment;
  const results = run?.results ?? [];
  const { succeeded, failed, cancelled, running, waiting, untried } = countsOf(results);
  const ended = succeeded + failed + cancelled + untried;
  const { canary = 0, batch } = fanOut;
  const paced =
    ended < canary ? `${counted(canary, 'canary', 'canaries')} first` : batch === undefined ? '' : `${batch} at a time`;
  const far = [
    `${ended} of ${results.length}`,
    ...(failed === 0 ? [] : [color.red(`${failed} failed`)]),
    ...(running === 0 ? [] : [`${running} running`]),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
    ...(paced === '' ? [] : [paced]),
  ].join(', ');
  const gauge = columns < 60 ? '' : `${bar(ended, results.length, 20, color)} `;
  const head = `${color.cyan(spinner)} ${color.bold(sanitiseLine(doing))} ${gauge}${far} ${color.dim(duration(seconds))}`;
  const freeRows = Math.max(1, rows - 3);
  const bad = results.filter(({ status }) => hasEnded(status) && status !== 'succeeded');
  const good = results.filter(({ status }) => status === 'succeeded');
  const busy = results.filter(({ status }) => status === 'running');
  const busyLines = busy.slice(0, Math.max(1, freeRows - Math.min(bad.length, 3))).map((result) => {
    const operation = view.at.get(result.node_id);
    const last = operation?.resources.at(-1);
    const doneSoFar = operation === undefined ? '' : ` ${counted(operation.resources.length, 'resource')}`;
    const at = last === undefined ? '' : color.dim(` ${sanitiseLine(`${last.type} ${last.identity}`)}`);
    return `  ${color.cyan(spinner)} ${color.bold(outcomeName(result))}${doneSoFar}${at}`;
  });
  const toLine = (result: Outcome) => `  ${outcomeLine(result, run?.kind ?? 'apply', color)}`;
  const badLines = newest(bad, freeRows - busyLines.length).map(toLine);
  const goodLines = newest(good, Math.min(3, freeRows - busyLines.length - badLines.length)).map(toLine);
  return [head, ...badLines, ...goodLines, ...busyLines];
}
