import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  findPosition,
  insertLines,
  isAt,
  type Position,
  positionOf,
  removeLines,
  type TextLine,
} from '../text-edit/lines.ts';
import { isAbsent, linesOf, pathOf } from '../text-edit/text-file.ts';
import { expectedLine, hitsIn, isTemplate, lineOf, maxLost, maxSaved, replacesEvery, savedSize } from './declared.ts';
import { neighborsOf, placesOf, rankOf } from './places.ts';
import type { Hit, SeenLine } from './seen.ts';

/** Record of the lines that the agent replaced, removed, or added for a line resource. */
export type LineBefore = {
  /** The line that the agent last wrote; null if the last apply declared it absent. */
  put: string | null;
  lost: Lost[];
};

/** A line that existed before the change, or, if `text` is null, the position of a line that the agent added. */
export type Lost = {
  text: string | null;
  end: TextLine['end'];
  /** Whether the agent's line is currently in this position. */
  stands: boolean;
  index: number;
  above: string | null;
  below: string | null;
  ending: Position['ending'];
  /** The agent's line in this position, if the resource replaces every line. */
  by?: string;
};

/** @throws HostFailure if the record would exceed its limits, because the line could then not be restored */
function addTo(lost: Lost[], entry: Lost, resource: ResolvedResource): void {
  lost.push(entry);
  const size = lost.reduce((sum, one) => sum + savedSize(one, one.by), 0);
  if (lost.length > maxLost || size > maxSaved)
    throw new HostFailure(
      `together with earlier applies, more than ${lost.length > maxLost ? `${maxLost} lines` : `${maxSaved / 1024} KiB of lines`} of ${pathOf(resource)} would change, the most that can be restored later; nothing was changed. Use a narrower \`match\`.`,
    );
}

/**
 * Records the lines that are about to change for the first time, except lines that the agent wrote.
 * @throws HostFailure if there are more lines than can be restored
 */
export function rememberLine(resource: ResolvedResource, seen: SeenLine, before: LineBefore | null): LineBefore {
  const lost = (before?.lost ?? []).map((entry) => ({ ...entry }));
  const lastWritten = before?.put ?? null;
  if (replacesEvery(resource)) return rememberEvery(resource, seen, lost, lastWritten);
  const isPresent = lastWritten !== null && seen.hits.some(({ text }) => text === lastWritten);
  // If the agent's line was edited by hand, the edited line counts as the agent's line.
  const isOwn = ({ text }: Hit): boolean =>
    lost.some(({ stands, by }) => stands && by === text) ||
    (lost.some(({ stands, by }) => stands && by === undefined) &&
      (isPresent ? text === lastWritten : lastWritten !== null));
  const keep = ({ text, end, index, above, below, ending }: Hit, stands: boolean): void => {
    addTo(lost, { text, end, stands, index, above, below, ending }, resource);
  };
  if (isAbsent(resource)) {
    for (const hit of seen.hits) if (!isOwn(hit)) keep(hit, false);
    const left = lost.filter(({ stands, text }) => !stands || text !== null);
    return { put: null, lost: left.map(({ by: _by, ...entry }) => ({ ...entry, stands: false })) };
  }
  const last = seen.hits.at(-1);
  if (last === undefined) {
    if (!lost.some(({ stands }) => stands)) lost.push({ text: null, end: '', stands: true, ...seen.end });
  } else if (!isOwn(last)) keep(last, true);
  const put = expectedLine(resource, last?.text ?? null) ?? lineOf(resource);
  const entry = lost.findLast(({ stands, by }) => stands && by === last?.text);
  if (entry?.by !== undefined) entry.by = put;
  return { put, lost };
}

/** Records every line that is about to change. A line of the agent that others edited keeps its first record. */
function rememberEvery(
  resource: ResolvedResource,
  seen: SeenLine,
  lost: Lost[],
  lastWritten: string | null,
): LineBefore {
  for (const entry of lost) if (entry.stands && lastWritten !== null) entry.by ??= lastWritten;
  const standing = lost.filter(({ stands, by }) => stands && by !== undefined);
  const places = placesOf(
    standing,
    linesOf(seen),
    seen.hits.map(({ index }) => index),
  );
  for (const { text, end, to, ...position } of seen.hits) {
    const entry = places.get(position.index);
    if (entry === undefined) addTo(lost, { text, end, stands: true, ...position, by: to as string }, resource);
    else entry.by = to as string;
  }
  const put = lineOf(resource);
  if (seen.managed === 0 && !isTemplate(resource) && standing.length === 0)
    lost.push({ text: null, end: '', stands: true, ...seen.end, by: put });
  return { put, lost };
}

/**
 * Returns the file with the agent's lines removed and the lines that they replaced restored. All other lines stay
 * unchanged.
 * @returns null if there is nothing to restore or remove
 */
export function restored(
  resource: ResolvedResource,
  before: LineBefore,
  lines: readonly TextLine[],
): { lines: TextLine[]; from: string | null; to: string | null } | null {
  if (before.lost.length === 0) return null;
  const every = before.lost.filter(({ stands, by }) => stands && by !== undefined);
  const matching = every.length === 0 ? [] : hitsIn(resource, null, lines);
  const pairs = new Map<number, Lost>(placesOf(every, lines, matching));
  const standing = before.lost.filter(({ stands, by }) => stands && by === undefined).sort((a, b) => a.index - b.index);
  const single = ourLines(resource, before, lines, standing.length).filter((index) => !pairs.has(index));
  const own = [...single, ...pairs.keys()].sort((a, b) => a - b);
  // Pairs lines from the end, because the agent adds lines at the end.
  for (let i = 1; i <= Math.min(single.length, standing.length); i++)
    pairs.set(single.at(-i) as number, standing.at(-i) as Lost);
  const neighbors = neighborsOf(every);
  const isPlaced = (index: number, entry: Lost): boolean =>
    (entry.by === undefined
      ? isAt(lines, index, 1, entry)
      : rankOf(entry, positionOf(lines, index, 1), neighbors) > 0) || findPosition(lines, entry) === null;
  const inPlace = new Set<Lost>();
  const replaced = lines.map((line, index): TextLine => {
    const entry = pairs.get(index);
    if (entry?.text == null || !isPlaced(index, entry)) return line;
    inPlace.add(entry);
    return { text: entry.text, end: line.end };
  });
  const removed = new Set(own.filter((index) => !inPlace.has(pairs.get(index) as Lost)));
  let after = removeLines(replaced, removed);
  const back = before.lost.filter((entry) => entry.text !== null && !inPlace.has(entry));
  for (const group of adjacentGroups(back.sort((a, b) => a.index - b.index))) {
    const [first, last] = [group[0] as Lost, group.at(-1) as Lost];
    const position = { ...first, below: last.below };
    const index = findPosition(after, position) ?? Math.min(position.index, after.length);
    const texts = group.map(({ text }) => text as string);
    after = insertLines(after, index, texts, { ending: position.ending, ends: group.map(({ end }) => end) });
  }
  if (isSame(lines, after)) return null;
  const from = own[0] === undefined ? null : (lines[own[0]]?.text ?? null);
  return { lines: after, from, to: before.lost.find(({ text }) => text !== null)?.text ?? null };
}

/** Groups adjacent lines, because only the lines around a group determine its position. */
function adjacentGroups(entries: readonly Lost[]): Lost[][] {
  const groups: Lost[][] = [];
  for (const entry of entries) {
    const last = groups.at(-1)?.at(-1);
    const follows = last?.index === entry.index - 1 && last.below === entry.text && entry.above === last.text;
    if (follows) groups.at(-1)?.push(entry);
    else groups.push([entry]);
  }
  return groups;
}

/**
 * Returns the positions of the agent's lines, even after edits by others. Others may have added a line again after it
 * was declared absent.
 */
function ourLines(
  resource: ResolvedResource,
  { put }: LineBefore,
  lines: readonly TextLine[],
  count: number,
): number[] {
  if (put === null) return hitsIn(resource, null, lines);
  if (count === 0) return [];
  const same = lines.flatMap(({ text }, index) => (text === put ? [index] : [])).slice(-count);
  return same.length > 0 ? same : hitsIn(resource, put, lines).slice(-1);
}

const isSame = (one: readonly TextLine[], other: readonly TextLine[]): boolean =>
  one.length === other.length &&
  one.every(({ text, end }, index) => other[index]?.text === text && other[index]?.end === end);
