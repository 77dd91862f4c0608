import type { ResourceResult } from '@muster/protocol';
import type { DriftRecord } from '@muster/protocol/http';
import { statusText } from '../../../client/src/status-text.ts';
import { changesToPrint, diffLines, fieldLines, headLine, messageLines } from './resource-text.ts';
import { sanitiseLine, sanitiseParagraph } from './sanitize.ts';
import { ago, type Colors, counted, type Style } from './style.ts';

/** Renders drift: the current values on the machine compared with the applied ones. */

function wordOf({ action, status }: ResourceResult): string {
  if (status === 'failed' || status === 'unknown') return 'failed';
  if (status === 'skipped') return 'skipped';
  if (action === 'create') return 'missing';
  if (action === 'remove') return 'back';
  return action === 'update' || action === 'none' ? 'drifted' : 'due';
}

function resourceLines(result: ResourceResult, style: Style): string[] {
  const { color } = style;
  const missing = result.action === 'create';
  const bad = result.status === 'failed' || result.status === 'unknown';
  const lines = [headLine(result, wordOf(result), 7, style)];
  if (result.message !== null) lines.push(...messageLines(result.message, bad ? color.red : color.dim));
  if (result.sensitive) lines.push(`      ${color.dim('contains a secret: its values are not shown')}`);
  lines.push(
    ...fieldLines(changesToPrint(result), style, (from, to) => {
      const declared = to === null ? 'expected absent' : `expected ${color.green(to)}`;
      if (missing) return declared;
      return `${from === null ? 'missing' : color.red(from)}, ${declared}`;
    }),
  );
  // The diff for a missing file is its entire content.
  if (result.diff !== null && (!missing || style.verbose)) {
    lines.push(`      ${color.red('- on the machine')}  ${color.green('+ expected')}`);
    lines.push(...diffLines(result.diff, color, false, style.verbose ? null : style.width));
  }
  return lines;
}

export const statusWord = ({ status, accepted }: Pick<DriftRecord, 'status' | 'accepted'>): string =>
  accepted === null ? statusText(status).replace('_', ' ') : 'accepted';

export const statusPaint = (status: DriftRecord['status'], color: Colors): ((text: string) => string) =>
  ({ in_sync: color.green, drifted: color.yellow, failed: color.red, cancelled: color.dim })[status];

/** Returns a line for a list, with the first drifted resources and their fields. */
export function inBrief({ resources, error }: Pick<DriftRecord, 'resources' | 'error'>): string {
  const few = resources.slice(0, 3).map((result) => {
    const fields = result.action === 'create' ? ['missing'] : result.changes.map(({ field }) => field);
    return `${result.identity}${fields.length === 0 ? '' : ` (${fields.join(', ')})`}`;
  });
  const more = resources.length - few.length;
  return sanitiseLine([...few, ...(more > 0 ? [`and ${more} more`] : [])].join(', ') || (error ?? ''));
}

/** @param agent the agent's label */
export function renderDrift(record: DriftRecord, agent: string, style: Style): string {
  const { color } = style;
  const { status, summary, resources, error, checked_at, snapshot_operation_id } = record;
  const name = color.bold(sanitiseLine(agent));
  const against = color.dim(
    `checked ${ago(checked_at, style.now)} against operation ${sanitiseLine(snapshot_operation_id)}`,
  );
  if (status === 'in_sync')
    return `${name} is ${color.green('in sync')}: ${counted(summary.total, 'resource')} as applied\n${against}`;
  const head =
    status === 'drifted'
      ? `${name} has ${color.yellow('drifted')}: ${resources.length} of ${counted(summary.total, 'resource')} ${resources.length === 1 ? 'differs' : 'differ'} from the applied state`
      : `the drift check of ${name} ${status === 'failed' ? color.red('failed') : 'was canceled'}`;
  const lines = [head, against];
  if (record.accepted !== null)
    lines.push(
      `accepted ${ago(record.accepted.at, style.now)}: ${sanitiseLine(record.accepted.reason)}${color.dim('  undo with muster drift --unaccept')}`,
    );
  lines.push('');
  for (const result of resources) lines.push(...resourceLines(result, style));
  if (resources.length > 0) lines.push('');
  if (error !== null) lines.push(`${color.red('error:')} ${sanitiseParagraph(error)}`);
  return lines.join('\n').trimEnd();
}
