import { hasEnded, type ResourceAction, type ResourceResult } from '@muster/protocol';
import type { Operation } from '@muster/protocol/http';
import { operationErrorText } from '../../../client/src/operation-error.ts';
import { statusText } from '../../../client/src/status-text.ts';
import { changesToPrint, diffLines, fieldLines, headLine, messageLines, paintOf } from './resource-text.ts';
import { sanitise, sanitiseLine, sanitiseParagraph } from './sanitize.ts';
import { counted, type Style } from './style.ts';
import { wrapWords } from './width.ts';

const planned: Readonly<Record<ResourceAction, string>> = {
  none: 'keep',
  create: 'create',
  update: 'update',
  remove: 'remove',
  run: 'run',
  reload: 'reload',
  restart: 'restart',
};
const done: Readonly<Record<ResourceAction, string>> = {
  none: 'kept',
  create: 'created',
  update: 'updated',
  remove: 'removed',
  run: 'ran',
  reload: 'reloaded',
  restart: 'restarted',
};

/** Reports whether the operation changes anything. */
export const hasChanges = ({ resources }: Pick<Operation, 'resources'>): boolean =>
  resources.some(({ status }) => status === 'would_change' || status === 'changed');

/** Returns the resources that applying this plan would remove. */
export const removalsOf = ({ resources }: Pick<Operation, 'resources'>): ResourceResult[] =>
  resources.filter(({ action, status }) => action === 'remove' && status === 'would_change');

function verbOf({ action, status }: ResourceResult): string {
  if (status === 'failed') return 'failed';
  if (status === 'unknown') return 'unknown';
  if (status === 'skipped') return 'skipped';
  return status === 'would_change' ? planned[action] : done[action];
}

function resourceLines(
  result: ResourceResult,
  style: Style,
  { width, detail }: { width: number; detail: boolean },
): string[] {
  const { color } = style;
  const lines = [headLine(result, verbOf(result), width, style)];
  if (result.status === 'failed' || result.status === 'unknown') {
    const text =
      result.message ?? (result.status === 'unknown' ? 'it may have run partially' : 'no reason was reported');
    lines.push(...messageLines(text, color.red, style.width));
  } else if (result.message !== null) lines.push(...messageLines(result.message, color.dim, style.width));
  if (!detail) return lines;
  if (result.corrective) lines.push(`      ${color.dim('repairs drift')}`);
  if (result.triggered_by.length > 0)
    lines.push(
      ...messageLines(`because of ${result.triggered_by.map(sanitiseLine).join(', ')}`, color.dim, style.width),
    );
  if (result.sensitive)
    lines.push(...messageLines('contains a secret: its values are not shown', color.dim, style.width));
  const fresh = result.action === 'create';
  lines.push(
    ...fieldLines(changesToPrint(result), style, (from, to) =>
      fresh && from === null ? (to ?? '-') : `${from ?? color.dim('nothing')} → ${to ?? color.dim('nothing')}`,
    ),
  );
  if (result.diff !== null) {
    const body = diffLines(result.diff, color, false, style.verbose ? null : style.width);
    // For a new file, the position of the hunk is always the first line.
    lines.push(...(fresh ? body.filter((line, at) => at > 0 || !line.includes('@@ -0,0 ')) : body));
  }
  return lines;
}

/** Returns the progress line of a finished resource. */
export function stepLine(result: ResourceResult, color: Style['color']): string {
  const style = { color, width: null, now: 0, verbose: false };
  const line = headLine(result, verbOf(result), 9, style);
  const isBad = result.status === 'failed' || result.status === 'unknown';
  const [why = ''] = isBad && result.message !== null ? sanitise(result.message).split('\n') : [];
  return why === '' ? line : `${line}: ${color.red(why)}`;
}

const counts = (resources: readonly ResourceResult[], status: 'would_change' | 'changed') => {
  const found = { none: 0, create: 0, update: 0, remove: 0, run: 0, reload: 0, restart: 0 };
  for (const result of resources) if (result.status === status) found[result.action]++;
  // Counts a change without an action as an update.
  found.update += found.none;
  return found;
};

const words = (count: number, text: string): string[] => (count === 0 ? [] : [`${count} ${text}`]);

/** Returns the totals: `Plan: 3 to create, 1 to update, 0 to remove, 20 unchanged`. */
export function countLine({ kind, resources, summary, status }: Operation, { color }: Style): string {
  const plan = kind === 'plan';
  const count = counts(resources, plan ? 'would_change' : 'changed');
  const one = (action: ResourceAction, text: string, always: boolean): string[] => {
    const phrase = `${count[action as keyof typeof count]} ${text}`;
    if (count[action as keyof typeof count] === 0) return always ? [phrase] : [];
    return [paintOf(action, color)(phrase)];
  };
  const to = plan ? 'to ' : '';
  const verb = plan ? planned : done;
  const parts = [
    ...one('create', `${to}${verb.create}`, true),
    ...one('update', `${to}${verb.update}`, true),
    ...one('remove', `${to}${verb.remove}`, true),
    ...one('run', `${to}${verb.run}`, false),
    ...one('reload', `${to}${verb.reload}`, false),
    ...one('restart', `${to}${verb.restart}`, false),
    `${summary.unchanged} unchanged`,
    ...words(summary.skipped, 'skipped'),
    ...words(summary.failed, 'failed').map(color.red),
  ];
  const repairs = resources.filter(
    (result) => result.corrective && result.status === (plan ? 'would_change' : 'changed'),
  );
  const verbOfRepair = plan ? (repairs.length === 1 ? 'repairs' : 'repair') : 'repaired';
  const drift = repairs.length === 0 ? '' : `; ${repairs.length} of them ${verbOfRepair} drift`;
  const head = plan
    ? 'Plan'
    : status === 'succeeded'
      ? 'Applied'
      : status === 'failed'
        ? 'Failed'
        : `Apply ${statusText(status)}`;
  return `${color.bold(`${head}:`)} ${parts.join(', ')}${drift}`;
}

/**
 * Renders a plan or an apply in full.
 * @param agent the agent's label
 * @param detail false prints only outcomes, because the changes and diffs were already shown
 */
export function renderOperation(operation: Operation, agent: string, style: Style, detail = true): string {
  const { color, verbose } = style;
  const { kind, status, resources, error } = operation;
  const head = kind === 'plan' ? 'Plan for' : 'Apply on';
  const modules =
    operation.modules.length === 0 ? '' : color.dim(` with ${operation.modules.map(sanitiseLine).join(', ')}`);
  const lines = [wrapped(`${color.bold(`${head} ${sanitiseLine(agent)}`)}${modules}`, style), ''];
  const width = kind === 'plan' ? 7 : 9;
  // Shows unchanged resources that have a message, such as a removal that leaves files behind.
  const listed = resources.filter((result) => verbose || result.status !== 'unchanged' || result.message !== null);
  for (const result of listed) lines.push(...resourceLines(result, style, { width, detail: detail || verbose }));
  if (listed.length > 0) lines.push('');
  if (error !== null) lines.push(`${color.red('error:')} ${sanitiseParagraph(operationErrorText(error))}`);
  if (!hasEnded(status)) lines.push(`The operation is ${status}.`);
  else if (status === 'succeeded' && listed.every((result) => result.status === 'unchanged'))
    lines.push(kind === 'plan' ? 'Nothing to do: the machine is as declared.' : 'Nothing to do.');
  // A running operation without results has nothing to count.
  if (hasEnded(status) || resources.length > 0) lines.push(wrappedCounts(countLine(operation, style), style));
  return lines.join('\n');
}

const wrapped = (text: string, { width }: Style): string => (width === null ? text : wrapWords(text, width, '  '));

/** Wraps totals only after a comma or a semicolon, so that each number stays next to its word. */
const wrappedCounts = (text: string, style: Style): string =>
  wrapped(text.replaceAll(/(?<![,;]) /g, '\u00a0'), style).replaceAll('\u00a0', ' ');

/** Returns a line for a list: `3 changed, 20 unchanged` or, for a plan, `3 to change, 20 unchanged`. */
export function summaryText({ kind, summary, status }: Pick<Operation, 'kind' | 'summary' | 'status'>): string {
  const { changed, removed, failed, skipped, unchanged } = summary;
  const parts = [
    ...words(failed, 'failed'),
    ...words(changed, kind === 'plan' ? 'to change' : 'changed'),
    ...words(removed, kind === 'plan' ? 'to remove' : 'removed'),
    ...words(skipped, 'skipped'),
    ...words(unchanged, 'unchanged'),
  ];
  // A running operation without results has no counts yet.
  if (parts.length === 0) return hasEnded(status) ? counted(0, 'resource') : '-';
  return parts.join(', ');
}
