import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { type Captures, captures, matching } from '../../host/files/bounded-match.ts';
import { readableLines } from '../text-edit/insertion.ts';
import { inBytes, readable, type TextLine } from '../text-edit/lines.ts';
import { isAbsent, pathOf } from '../text-edit/text-file.ts';

/** Maximum number of lines that a resource records so that they can be restored. */
export const maxLost = 256;
/**
 * Maximum total length of the lines that a resource records so that they can be restored, with their neighbors, in
 * characters.
 */
export const maxSaved = 128 * 1024;

/** Returns how many characters of `maxSaved` a line uses. @param by the line that replaces it */
export const savedSize = (
  { text, above, below }: Record<'text' | 'above' | 'below', string | null>,
  by: string | undefined,
): number => (text?.length ?? 0) + (above?.length ?? 0) + (below?.length ?? 0) + (by?.length ?? 0);

type Body = ResourceBodies['line-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
/** Returns the declared line, encoded as in `TextLine`. */
export const lineOf = (resource: ResolvedResource): string => inBytes(bodyOf(resource).line);

/** Returns the positions of the lines that the resource manages. */
export function hitsIn(resource: ResolvedResource, previous: string | null, lines: readonly TextLine[]): number[] {
  const { match } = bodyOf(resource);
  // With captures, `line` is a template, so no line of the file equals it.
  const line = isTemplate(resource) ? null : lineOf(resource);
  const matched = match == null ? null : matching(match, readableLines(lines));
  const hits: number[] = [];
  for (const [index, { text }] of lines.entries())
    if (text === line || (line !== null && text === previous) || matched?.[index] === true) hits.push(index);
  return hits;
}

/** Returns the positions to change: the last hit, or all hits if every line is replaced or removed. */
export function linesToChange(
  resource: ResolvedResource,
  previous: string | null,
  lines: readonly TextLine[],
): number[] {
  const hits = hitsIn(resource, previous, lines);
  return isAbsent(resource) || replacesEvery(resource) ? hits : hits.slice(-1);
}

export const hasCaptures = (resource: ResolvedResource): boolean =>
  bodyOf(resource).backrefs === true && !isAbsent(resource);

/** Reports whether every match is replaced, instead of only the last matching line. */
export const replacesEvery = (resource: ResolvedResource): boolean =>
  !isAbsent(resource) && (bodyOf(resource).replaces ?? 'last_line') !== 'last_line';

/** Reports whether `line` is not a whole line of the file. Such a line is never added. */
export const isTemplate = (resource: ResolvedResource): boolean =>
  hasCaptures(resource) || (replacesEvery(resource) && bodyOf(resource).replaces === 'every_part');

/**
 * Returns the declared text of a line, encoded as in `TextLine`.
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
      `\`match\` matches ${among} lines of ${pathOf(resource)} but not the resulting line, so each apply would change one more line; write a narrower \`match\``,
    );
  return once === null ? null : inBytes(once);
}

/** Expands `line` for the first match in a text. Returns null if the text does not match. */
function expanded(resource: ResolvedResource, text: string): string | null {
  const found = captures(bodyOf(resource).match ?? '', text);
  return found === null ? null : expandedLine(resource, found);
}

/** Expands the references `\\1`, `\\g<name>`, and `\\\\` in `line`. */
export function expandedLine(resource: ResolvedResource, found: Captures): string {
  const { line } = bodyOf(resource);
  if (!hasCaptures(resource)) return line;
  return line.replace(/\\(?:(\\)|(\d{1,2})|g<(\d{1,2})>|g<(\w+)>)/g, (whole, backslash, short, long, name) => {
    if (backslash !== undefined) return '\\';
    const number = Number(short ?? long);
    const isThere = name === undefined ? number < found.groups.length : Object.hasOwn(found.names, name);
    if (!isThere) throw new HostFailure(`\`line\` refers to ${whole}, but \`match\` has no such group`);
    return (name === undefined ? found.groups[number] : found.names[name]) ?? '';
  });
}
