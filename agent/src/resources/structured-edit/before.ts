import { HostFailure } from '../../host/failure.ts';
import type { Json } from '../provider/provider.ts';
import { joinText, splitText, type TextLine } from '../text-edit/lines.ts';
import { hasValue, parse, type StructuredFile, withoutSetting, withSetting } from './edit.ts';
import { lineNumber, type Range, spliced, type Tree } from './syntax.ts';
import {
  declaredValue,
  isEmpty,
  jsonOf,
  locate,
  type Place,
  type Pointer,
  same,
  type Value,
  withValue,
} from './value.ts';

/** A line in the form that the journal stores. */
type SavedLine = Pick<TextLine, 'text' | 'end'>;

/** Lines in a file that a change replaces. */
type Change = {
  /** Index of the first line. */
  index: number;
  old: SavedLine[];
  now: SavedLine[];
  /** The lines above and below; null at the start and end of the file. */
  above: string | null;
  below: string | null;
};

/** The value before the agent first changed it. */
export type ValueBefore =
  | {
      was: 'absent';
      /** Number of the pointer's keys that existed. */
      depth: number;
      addedBlank: boolean;
      /** Lines of the innermost container's entry, if the container was empty. */
      old: SavedLine[] | null;
    }
  | {
      was: 'present';
      value: Json;
      /** Text of the value; null if the value was not contiguous. */
      raw: string | null;
      /** Lines of the entry. */
      entry: SavedLine[];
      /** The change that a removal would make; null if the value cannot be removed. */
      removal: Change | null;
    };

/** Maximum length of the lines that are kept so that they can be restored, in characters. */
const maxSaved = 128 * 1024;

function changeOf(before: readonly TextLine[], after: readonly TextLine[]): Change {
  const equal = (one: TextLine | undefined, other: TextLine | undefined): boolean =>
    one?.text === other?.text && one?.end === other?.end;
  const shorter = Math.min(before.length, after.length);
  let index = 0;
  while (index < shorter && equal(before[index], after[index])) index++;
  let same = 0;
  while (same < shorter - index && equal(before.at(-1 - same), after.at(-1 - same))) same++;
  return {
    index,
    old: before.slice(index, before.length - same),
    now: after.slice(index, after.length - same),
    above: before[index - 1]?.text ?? null,
    below: before[before.length - same]?.text ?? null,
  };
}

const lengthOf = (lines: readonly TextLine[]): number => lines.reduce((sum, { text }) => sum + text.length, 0);

/** Returns the indexes of the first line in a range and of the line after its last one. */
function linesOf(text: string, { start, end }: Range): { first: number; behind: number } {
  const last = end > start && text[end - 1] === '\n' ? end - 1 : end;
  return { first: lineNumber(text, start) - 1, behind: lineNumber(text, last) };
}

/**
 * Records the value before its first change.
 * @param after the file after the change
 */
export function valueBefore<T extends Tree>(
  file: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
  place: Place,
  after: { text: string; addedBlank: boolean },
): ValueBefore {
  const { text } = tree;
  const lines = splitText(text);
  const tooMuch = (size: number): void => {
    if (size > maxSaved)
      throw new HostFailure(
        `the value in ${file.path} has more than ${maxSaved / 1024} KiB, which is too much to restore later; nothing was changed`,
      );
  };
  if (!place.found) {
    const covered = isEmpty(place.container) ? linesOfContainer(file, tree, pointer.slice(0, place.depth)) : null;
    const old = covered === null ? null : lines.slice(covered.first, covered.behind);
    tooMuch(old === null ? 0 : lengthOf(old));
    return { was: 'absent', depth: place.depth, addedBlank: after.addedBlank, old };
  }
  const found = file.syntax.find(tree, pointer);
  const covered = found === null ? { first: 0, behind: 0 } : linesOf(text, found.entry);
  const before = {
    was: 'present' as const,
    value: jsonOf(place.value),
    raw: found === null ? null : text.slice(found.value.start, found.value.end),
    entry: lines.slice(covered.first, covered.behind),
    removal: removalOf(file, tree, pointer, lines),
  };
  tooMuch((before.raw?.length ?? 0) + lengthOf(before.entry) + lengthOf(before.removal?.old ?? []));
  return before;
}

/** Returns the lines of an empty mapping; null if removing its only entry restores the mapping. */
function linesOfContainer<T extends Tree>(
  { syntax }: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
): { first: number; behind: number } | null {
  if (pointer.length === 0) return tree.text.trim() === '' ? { first: 0, behind: splitText(tree.text).length } : null;
  const found = syntax.find(tree, pointer);
  return found === null ? null : linesOf(tree.text, found.entry);
}

function removalOf<T extends Tree>(
  file: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
  lines: readonly TextLine[],
): Change | null {
  try {
    return changeOf(lines, splitText(withoutSetting(file, tree, pointer)));
  } catch (error) {
    if (error instanceof HostFailure) return null;
    throw error;
  }
}

/**
 * Returns the file with the value as it was before the agent's first change. Changes by others are kept.
 * @returns null if it is in that state
 */
export function restored<T extends Tree>(
  file: StructuredFile<T>,
  text: string,
  pointer: Pointer,
  before: ValueBefore,
): { text: string; from: Value | null; to: Value | null } | null {
  const tree = parse(file, text);
  const place = locate(tree.value, pointer, file.path);
  const from = place.found ? place.value : null;
  if (before.was === 'absent')
    return place.found ? { text: withoutAdded(file, tree, pointer, before), from, to: null } : null;
  const to = declaredValue(before.value);
  const expected = withValue(tree.value, pointer, to);
  const found = place.found ? file.syntax.find(tree, pointer) : null;
  if (place.found && same(place.value, to))
    if (found === null || before.raw === null || text.slice(found.value.start, found.value.end) === before.raw)
      return null;
  const candidates = place.found ? inPlace(text, found, before) : reinserted(text, before.removal);
  for (const candidate of candidates) if (hasValue(file, candidate, expected)) return { text: candidate, from, to };
  return { text: withSetting(file, tree, pointer, place, to).text, from, to };
}

/** Removes a value that the agent added, and the mappings that it added around it. */
function withoutAdded<T extends Tree>(
  file: StructuredFile<T>,
  tree: T,
  pointer: Pointer,
  { depth, addedBlank, old }: Extract<ValueBefore, { was: 'absent' }>,
): string {
  let target = pointer;
  const containerOf = (keys: Pointer): Value => {
    const place = locate(tree.value, keys.slice(0, -1), file.path);
    return place.found ? place.value : null;
  };
  const isAlone = (keys: Pointer): boolean => {
    const container = containerOf(keys);
    return container instanceof Map && container.size === 1;
  };
  while (target.length - 1 > depth && isAlone(target)) target = target.slice(0, -1);
  const removed = withoutSetting(file, tree, target, addedBlank);
  if (old === null || target.length - 1 !== depth || !isAlone(target)) return removed;
  const lines = splitText(tree.text);
  const owner = target.slice(0, -1);
  const entry = owner.length === 0 ? { start: 0, end: tree.text.length } : file.syntax.find(tree, owner)?.entry;
  if (entry === undefined) return removed;
  const { first, behind } = linesOf(tree.text, entry);
  const candidate = joinText([...lines.slice(0, first), ...old, ...lines.slice(behind)]);
  return hasValue(file, candidate, withValue(tree.value, target, undefined)) ? candidate : removed;
}

/** Returns candidates for the text in which the previous value replaces the current one, best first. */
function* inPlace(
  text: string,
  found: { value: Range; entry: Range } | null,
  { raw, entry }: Extract<ValueBefore, { was: 'present' }>,
): Generator<string> {
  if (found === null || raw === null) return;
  const isOneLine = raw !== '' && !raw.includes('\n');
  if (isOneLine) yield spliced(text, found.value, raw);
  const lines = splitText(text);
  const { first, behind } = linesOf(text, found.entry);
  yield joinText([...lines.slice(0, first), ...entry, ...lines.slice(behind)]);
  if (!isOneLine) yield spliced(text, found.value, raw);
}

/** Returns candidates for the text in which the removed lines are restored, best first. */
function* reinserted(text: string, removal: Change | null): Generator<string> {
  if (removal === null) return;
  const { index, old, now, above, below } = removal;
  const lines = splitText(text);
  const places: { at: number; rank: number }[] = [];
  for (let at = 0; at + now.length <= lines.length; at++) {
    if (!now.every((line, offset) => lines[at + offset]?.text === line.text)) continue;
    const rank =
      Number((lines[at - 1]?.text ?? null) === above) + Number((lines[at + now.length]?.text ?? null) === below);
    if (rank > 0) places.push({ at, rank });
  }
  places.sort((a, b) => b.rank - a.rank || Math.abs(a.at - index) - Math.abs(b.at - index));
  for (const { at } of places.slice(0, 3))
    yield joinText([...lines.slice(0, at), ...old, ...lines.slice(at + now.length)]);
}
