import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { captures, matching } from '../../host/files/bounded-match.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import type { Machine } from '../provider/provider.ts';
import { insertionIndex, readableLines } from '../text-edit/insertion.ts';
import { inBytes, type Position, positionOf, readable, type TextLine } from '../text-edit/lines.ts';
import { isAbsent, linesOf, lookAtText, pathOf, type SeenText } from '../text-edit/text-file.ts';

export type Body = ResourceBodies['line-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
/** Returns the declared line, in the characters of `TextLine`. */
export const lineOf = (resource: ResolvedResource): string => inBytes(bodyOf(resource).line);

/**
 * A line that the resource manages: one that matches `match`, or equals the declared or the previously declared line.
 */
export interface Hit extends Position {
  text: string;
  end: TextLine['end'];
}

export interface SeenLine extends SeenText {
  /**
   * Managed lines in file order. If the line must be present, contains only the last few, because only the last one
   * changes.
   */
  hits: Hit[];
  /** Position at which a new line is added. */
  end: Position;
  /** The program that `validate` would run, if it is missing. */
  missingProgram?: string;
  /** The line declared when the resource last succeeded here. */
  previous: string | null;
  /** For a removal, the first removed and the first restored line. Null if nothing has to be restored. */
  restored: { from: string | null; to: string | null; diff: string | null } | null;
}

const maxHits = 64;
/** Maximum total length of foreign lines that are kept so that they can be restored, in characters. */
const maxSaved = 128 * 1024;

/** Returns the positions of the lines that the resource manages. */
export function hitsIn(resource: ResolvedResource, previous: string | null, lines: readonly TextLine[]): number[] {
  const { match } = bodyOf(resource);
  // With captures, `line` is a template, so no line of the file equals it.
  const line = hasCaptures(resource) ? null : lineOf(resource);
  const matched = match == null ? null : matching(match, readableLines(lines));
  const hits: number[] = [];
  for (const [index, { text }] of lines.entries())
    if (text === line || (line !== null && text === previous) || matched?.[index] === true) hits.push(index);
  return hits;
}

/** Returns the positions to change: the last hit for a line to be present, or all hits for a line to be absent. */
export function linesToChange(
  resource: ResolvedResource,
  previous: string | null,
  lines: readonly TextLine[],
): number[] {
  const hits = hitsIn(resource, previous, lines);
  return isAbsent(resource) ? hits : hits.slice(-1);
}

const hasCaptures = (resource: ResolvedResource): boolean => bodyOf(resource).backrefs === true && !isAbsent(resource);

/**
 * Returns the declared text of a line, in the characters of `TextLine`.
 * @param text the line to replace; null if the line is added
 * @param among number of managed lines, of which this is the last
 * @returns null if no line is added
 * @throws HostFailure if `line` cannot be expanded from this text, or if the next apply would change the result again
 */
export function expectedLine(resource: ResolvedResource, text: string | null, among = 1): string | null {
  if (!hasCaptures(resource)) return lineOf(resource);
  if (text === null) return null;
  const shown = readable(text);
  if (inBytes(shown) !== text)
    throw new HostFailure(
      `a line of ${pathOf(resource)} matched by \`match\` is not UTF-8, so \`backrefs\` cannot use it`,
    );
  const once = expanded(resource, shown);
  const again = once === null ? null : expanded(resource, once);
  if (again !== null && again !== once)
    throw new HostFailure(
      '`match` also matches the resulting line and would change it again on each apply; write a narrower `match`, or a `line` that stays the same',
    );
  // The next apply would change the previous match, because the resulting line no longer matches.
  if (once !== null && again === null && among > 1)
    throw new HostFailure(
      `\`match\` matches ${among} lines of ${pathOf(resource)} but not the resulting line, so each apply would change another line; write a narrower \`match\``,
    );
  return once === null ? null : inBytes(once);
}

/** Expands the references `\\1`, `\\g<name>`, and `\\\\` in `line`. Returns null if the text does not match. */
function expanded(resource: ResolvedResource, text: string): string | null {
  const { match, line } = bodyOf(resource);
  const found = captures(match ?? '', text);
  if (found === null) return null;
  return line.replace(/\\(?:(\\)|(\d{1,2})|g<(\d{1,2})>|g<(\w+)>)/g, (whole, backslash, short, long, name) => {
    if (backslash !== undefined) return '\\';
    const number = Number(short ?? long);
    const isThere = name === undefined ? number < found.groups.length : Object.hasOwn(found.names, name);
    if (!isThere) throw new HostFailure(`\`line\` refers to ${whole}, but \`match\` has no such group`);
    return (name === undefined ? found.groups[number] : found.names[name]) ?? '';
  });
}

export function look(resource: ResolvedResource, previous: string | null, machine: Pick<Machine, 'walk'>): SeenLine {
  const seen = lookAtText(resource, machine);
  const lines = linesOf(seen);
  const all = hitsIn(resource, previous, lines);
  const managed = isAbsent(resource) ? all : all.slice(-maxHits);
  const hits = managed.map((index): Hit => {
    const { text, end } = lines[index] as TextLine;
    return { text, end, ...positionOf(lines, index, 1) };
  });
  const size = hits.reduce(
    (sum, { text, above, below }) => sum + text.length + (above?.length ?? 0) + (below?.length ?? 0),
    0,
  );
  if (size > maxSaved)
    throw new HostFailure(
      `the lines to replace in ${pathOf(resource)} exceed ${maxSaved / 1024} KiB, the most that can be restored later; nothing was changed. Use a narrower \`match\`.`,
    );
  const isAdded = hits.length === 0 && !isAbsent(resource);
  const end = positionOf(lines, isAdded ? insertionIndex(bodyOf(resource), lines) : lines.length, 0);
  const { validate } = bodyOf(resource);
  const missing = validate == null || isAbsent(resource) ? null : missingProgram(validate);
  return { ...seen, hits, end, previous, restored: null, ...(missing === null ? {} : { missingProgram: missing }) };
}
