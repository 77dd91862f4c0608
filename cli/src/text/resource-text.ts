import type { FieldChange, ResourceAction, ResourceResult } from '@muster/protocol';
import stringWidth from 'string-width';
import { sanitise, sanitiseLine } from './sanitize.ts';
import type { Colors, Style } from './style.ts';
import { cutTo, wrapWords } from './width.ts';

/** Renders a resource with its fields and its diff, for plans, applies, and drift. */

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

/** Returns `module/id`; only the module for a resource without an ID. */
const sourceOf = ({ module, id }: ResourceResult): string => (id === null ? module : `${module}/${id}`);

const indent = '      ';
const longestValue = 160;

/**
 * Returns the first line of a resource.
 * @param width width of the action column
 */
export function headLine(
  result: ResourceResult,
  verb: string,
  width: number,
  { color, width: columns }: Style,
): string {
  const { type, identity, action, status } = result;
  const bad = status === 'failed' || status === 'unknown';
  const paint = bad ? color.red : status === 'skipped' ? color.dim : paintOf(action, color);
  const symbol = bad ? '!' : status === 'skipped' ? '.' : symbols[action];
  const source = color.dim(`(${sanitiseLine(sourceOf(result))})`);
  const head = `  ${paint(`${symbol} ${verb.padEnd(width)}`)} ${sanitiseLine(type)}`;
  const name = color.bold(sanitiseLine(identity));
  const fits = (text: string) => columns === null || stringWidth(text) <= columns;
  // Moves a long identity to its own line instead of truncating it.
  const line = fits(`${head} ${name}`) ? `${head} ${name}` : `${head}\n${indent}${name}`;
  return fits(`${head} ${name} ${source}`) ? `${line} ${source}` : `${line}\n${indent}${source}`;
}

/** Number of equal characters to show before the first difference if the beginning of a value is omitted. */
const lead = 8;

/** Returns the values of a field. Truncates long values to the part where they differ. */
function shown(values: readonly (string | null)[], maxWidth: number | null): (string | null)[] {
  const texts = values.map((value) => (value === null ? null : value === '' ? '""' : [...sanitiseLine(value)]));
  const [one, other] = texts;
  if (maxWidth === null) return texts.map((text) => (text === null ? null : [...text].join('')));
  let same = 0;
  if (one && other) while (same < Math.min(one.length, other.length) && one[same] === other[same]) same++;
  const from =
    one && other && Math.max(one.length, other.length) > maxWidth
      ? Math.max(0, same - Math.min(lead, Math.floor(maxWidth / 4)))
      : 0;
  return texts.map((text) =>
    text === null ? null : cutTo(`${from > 1 ? '…' : ''}${[...text].slice(from > 1 ? from : 0).join('')}`, maxWidth),
  );
}

/** Returns the maximum width of one value; null for no limit. */
function valueWidthOf(
  { verbose, width }: Pick<Style, 'verbose' | 'width'>,
  name: number,
  values: number,
): number | null {
  if (verbose) return null;
  if (width === null) return longestValue;
  const rest = width - indent.length - name - 2 - (values > 1 ? 3 : 0);
  return Math.max(7, Math.min(longestValue, Math.floor(rest / values)));
}

/**
 * Returns a line for each changed field, with aligned names.
 * @param between the text that joins the two values: `0600 → 0644`
 */
export function fieldLines(
  changes: readonly FieldChange[],
  style: Pick<Style, 'verbose' | 'width'>,
  between: (from: string | null, to: string | null) => string,
): string[] {
  const width = Math.min(24, Math.max(0, ...changes.map(({ field }) => sanitiseLine(field).length)));
  return changes.map(({ field, from, to }) => {
    const valueWidth = valueWidthOf(style, width, from === null || to === null ? 1 : 2);
    const [was = null, is = null] = shown([from, to], valueWidth);
    return `${indent}${sanitiseLine(field).padEnd(width)}  ${between(was, is)}`;
  });
}

/**
 * Returns a unified diff, indented and colored.
 * @param headers whether to keep the `---` and `+++` lines, which are redundant for a single file
 * @param width maximum line length; null for no limit
 */
export function diffLines(diff: string, color: Colors, headers = false, width: number | null = null): string[] {
  const cut = (line: string) => (width === null ? line : cutTo(line, Math.max(10, width - indent.length)));
  const lines = sanitise(diff.replace(/\n$/, '')).split('\n').map(cut);
  const [first = '', second = ''] = lines;
  const named = first.startsWith('--- ') && second.startsWith('+++ ');
  const shownLines = named && !headers ? lines.slice(2) : lines;
  return shownLines.map((line, at) => {
    const isHeader = named && headers && at < 2;
    if (isHeader) return indent + color.bold(line);
    if (line.startsWith('+')) return indent + color.green(line);
    if (line.startsWith('-')) return indent + color.red(line);
    if (line.startsWith('@@')) return indent + color.cyan(line);
    return indent + color.dim(line);
  });
}

/** Returns an agent's message as indented lines. */
export function messageLines(message: string, paint: Paint, width: number | null = null): string[] {
  const wrap = (line: string) => (width === null ? line : wrapWords(line, width - indent.length, ''));
  return sanitise(message.trimEnd())
    .split('\n')
    .flatMap((line) => wrap(line).split('\n'))
    .map((line) => indent + paint(line));
}

/** Returns the changes to print. Omits the content digest if there is a diff, and `ensure` if the action implies it. */
export const changesToPrint = ({ action, changes, diff }: ResourceResult): FieldChange[] =>
  changes.filter(({ field }) => {
    if (field === 'content') return diff === null;
    return field !== 'ensure' || (action !== 'create' && action !== 'remove');
  });
