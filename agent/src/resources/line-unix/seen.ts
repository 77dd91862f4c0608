import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { matching } from '../../host/bounded-match.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider.ts';
import { inBytes, type Place, placeOf, readable, type TextLine } from '../text-edit/lines.ts';
import { isAbsent, linesOf, lookAtText, pathOf, type SeenText } from '../text-edit/text-file.ts';

export type Body = ResourceBodies['line-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
/** The declared line, in the characters of `TextLine`. */
export const lineOf = (resource: ResolvedResource): string => inBytes(bodyOf(resource).line);

/** A line that is meant: it matches, or it is the declared one, or the one that was declared before. */
export interface Hit extends Place {
  text: string;
  end: TextLine['end'];
}

export interface SeenLine extends SeenText {
  /** In order; of a line that is to be there the last few: the last one counts. */
  hits: Hit[];
  /** A gap at the end of the file, where a line is added. */
  end: Place;
  /** What was declared when it last succeeded here. */
  previous: string | null;
  /** Only for a removal: the first line that goes and the first that comes back; null when all is as it was. */
  restored: { from: string | null; to: string | null; diff: string | null } | null;
}

const maxHits = 64;
/** Characters of lines of others that are kept to be brought back. */
const maxKept = 128 * 1024;

/** Positions of the lines that are meant. */
export function hitsIn(resource: ResolvedResource, previous: string | null, lines: readonly TextLine[]): number[] {
  const { match } = bodyOf(resource);
  const line = lineOf(resource);
  const matched = match == null ? null : matching(match, readableLines(lines));
  const hits: number[] = [];
  for (const [index, { text }] of lines.entries())
    if (text === line || text === previous || matched?.[index] === true) hits.push(index);
  return hits;
}

function* readableLines(lines: readonly TextLine[]): Generator<string> {
  for (const { text } of lines) yield readable(text);
}

/** The last hit of a line that is to be there; all of one that is not. */
export function meant(resource: ResolvedResource, previous: string | null, lines: readonly TextLine[]): number[] {
  const hits = hitsIn(resource, previous, lines);
  return isAbsent(resource) ? hits : hits.slice(-1);
}

export function look(resource: ResolvedResource, previous: string | null, machine: Pick<Machine, 'walk'>): SeenLine {
  const seen = lookAtText(resource, machine);
  const lines = linesOf(seen);
  const all = hitsIn(resource, previous, lines);
  const kept = isAbsent(resource) ? all : all.slice(-maxHits);
  const hits = kept.map((index): Hit => {
    const { text, end } = lines[index] as TextLine;
    return { text, end, ...placeOf(lines, index, 1) };
  });
  const size = hits.reduce(
    (sum, { text, above, below }) => sum + text.length + (above?.length ?? 0) + (below?.length ?? 0),
    0,
  );
  if (size > maxKept)
    throw new HostFailure(
      `the lines of ${pathOf(resource)} that it takes the place of have more than ${maxKept / 1024} KiB together, which is not kept to be brought back; nothing is changed. Make \`match\` narrower.`,
    );
  return { ...seen, hits, end: placeOf(lines, lines.length, 0), previous, restored: null };
}
