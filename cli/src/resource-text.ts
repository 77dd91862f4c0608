import type { FieldChange, ResourceAction, ResourceResult } from '@muster/protocol';
import { sanitise, sanitiseLine } from './sanitise.ts';
import type { Colors, Style } from './style.ts';

/** What plans, applies and drift share: one resource with its fields and its diff. */

type Paint = (text: string) => string;

const symbols: Readonly<Record<ResourceAction, string>> = {
  none: ' ',
  create: '+',
  update: '~',
  remove: '-',
  run: '>',
  reload: '>',
  restart: '>',
};

/** Green for what comes, yellow for what changes, red for what goes, cyan for what runs. */
export const paintOf = (action: ResourceAction, color: Colors): Paint =>
  ({
    none: (text: string) => text,
    create: color.green,
    update: color.yellow,
    remove: color.red,
    run: color.cyan,
    reload: color.cyan,
    restart: color.cyan,
  })[action];

/** `module/id`, or the module alone for a resource without an id. */
const placeOf = ({ module, id }: ResourceResult): string => (id === null ? module : `${module}/${id}`);

const indent = '      ';
const longestValue = 160;

/** @param width of the column of verbs */
export function headLine(result: ResourceResult, verb: string, width: number, { color }: Style): string {
  const { type, identity, action, status } = result;
  const bad = status === 'failed' || status === 'unknown';
  const paint = bad ? color.red : status === 'skipped' ? color.dim : paintOf(action, color);
  const symbol = bad ? '!' : status === 'skipped' ? '.' : symbols[action];
  const place = color.dim(`(${sanitiseLine(placeOf(result))})`);
  return `  ${paint(`${symbol} ${verb.padEnd(width)}`)} ${sanitiseLine(type)} ${color.bold(sanitiseLine(identity))} ${place}`;
}

function shown(value: string, verbose: boolean): string {
  if (value === '') return '""';
  const text = sanitiseLine(value);
  return verbose || text.length <= longestValue ? text : `${[...text].slice(0, longestValue - 1).join('')}…`;
}

/**
 * The fields that change, one a line, their names in a column.
 * @param between how the two values are told: `0600 → 0644`
 */
export function fieldLines(
  changes: readonly FieldChange[],
  { verbose }: Pick<Style, 'verbose'>,
  between: (from: string | null, to: string | null) => string,
): string[] {
  const width = Math.min(24, Math.max(0, ...changes.map(({ field }) => sanitiseLine(field).length)));
  return changes.map(({ field, from, to }) => {
    const values = between(from === null ? null : shown(from, verbose), to === null ? null : shown(to, verbose));
    return `${indent}${sanitiseLine(field).padEnd(width)}  ${values}`;
  });
}

/**
 * A unified diff, indented and coloured.
 * @param headers keep the `---` and `+++` lines, which repeat what stands above when there is one file
 */
export function diffLines(diff: string, color: Colors, headers = false): string[] {
  const lines = sanitise(diff.replace(/\n$/, '')).split('\n');
  const [first = '', second = ''] = lines;
  const named = first.startsWith('--- ') && second.startsWith('+++ ');
  const kept = named && !headers ? lines.slice(2) : lines;
  return kept.map((line, at) => {
    const isHeader = named && headers && at < 2;
    if (isHeader) return indent + color.bold(line);
    if (line.startsWith('+')) return indent + color.green(line);
    if (line.startsWith('-')) return indent + color.red(line);
    if (line.startsWith('@@')) return indent + color.cyan(line);
    return indent + color.dim(line);
  });
}

/** What the agent says about it, also of several lines. */
export function messageLines(message: string, paint: Paint): string[] {
  return sanitise(message.trimEnd())
    .split('\n')
    .map((line) => indent + paint(line));
}

/**
 * The fields worth a line. The content of a file is told by the diff, and its digest beside it tells a person nothing; that what is
 * created was absent goes without saying.
 */
export const tellingChanges = ({ action, changes, diff }: ResourceResult): FieldChange[] =>
  changes.filter(({ field }) => {
    if (field === 'content') return diff === null;
    return field !== 'ensure' || (action !== 'create' && action !== 'remove');
  });
