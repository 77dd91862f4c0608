import type { ResolvedResource } from '@muster/protocol/module';
import { type Circumstances, type Difference, nothing, typeDrift } from '../provider/provider.ts';
import { insertionIndex } from '../text-edit/insertion.ts';
import { insertLines, readable, removeLines, type TextLine } from '../text-edit/lines.ts';
import {
  awaiting,
  bitsLost,
  changedLines,
  isAbsent,
  linesOf,
  nothingLeft,
  otherObject,
  shown,
} from '../text-edit/text-file.ts';
import type { LineBefore } from './before.ts';
import { bodyOf, expectedLine, isTemplate, replacesEvery } from './declared.ts';
import { replacements } from './every.ts';
import type { SeenLine } from './seen.ts';

export function diffLine(
  resource: ResolvedResource,
  seen: SeenLine,
  circumstances: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const other = otherObject(resource, seen, circumstances);
  if (other !== null) return other;
  const changes = (from: string | null, to: string | null): Difference['changes'] => [
    { field: 'line', from: from === null ? null : shown(from), to: to === null ? null : shown(to) },
    ...bitsLost(seen),
  ];
  const after = (hits: readonly number[]): string | null =>
    seen.content === null ? null : changedLines(resource, seen, edited(resource, linesOf(seen), hits));
  if (isAbsent(resource)) {
    if (seen.hits.length === 0) return nothing();
    const from = seen.hits.map(({ text }) => readable(text)).join('\n');
    return { action: 'remove', changes: changes(from, null), diff: after(seen.hits.map(({ index }) => index)) };
  }
  const isMissing = (seen.managed ?? seen.hits.length) === 0;
  if (isMissing && seen.type === 'file' && isTemplate(resource))
    return nothing(
      `no line matches, and with \`${bodyOf(resource).backrefs === true ? 'backrefs' : 'replaces: every_part'}\` no line is added`,
    );
  if (seen.type === 'absent' && isTemplate(resource) && circumstances.purpose === 'drift')
    return typeDrift({ type: 'absent' }, 'file');
  const prerequisites = awaiting(resource, seen, circumstances);
  if (seen.type === 'absent' && isTemplate(resource))
    return { action: 'update', changes: changes(null, 'unknown until the file exists'), diff: null, ...prerequisites };
  if (replacesEvery(resource) && !isMissing) {
    if (seen.hits.length === 0) return nothing();
    const from = seen.hits.map(({ text }) => readable(text)).join('\n');
    const to = seen.hits.map((hit) => readable(hit.to as string)).join('\n');
    const diff = after(seen.hits.map(({ index }) => index));
    return { action: 'update', changes: changes(from, to), diff, ...prerequisites };
  }
  const last = seen.hits.at(-1);
  const among = circumstances.purpose === 'drift' ? 1 : seen.hits.length;
  const expected = expectedLine(resource, last?.text ?? null, among);
  if (last !== undefined && last.text === expected) return nothing();
  return {
    action: last === undefined ? 'create' : 'update',
    changes: changes(
      last === undefined ? null : readable(last.text),
      expected === null ? bodyOf(resource).line : readable(expected),
    ),
    diff: after(last === undefined ? [] : [last.index]),
    ...prerequisites,
  };
}

/**
 * Reports whether the file is as declared.
 * @param hits positions of the lines to replace or remove
 */
export function isDone(resource: ResolvedResource, lines: readonly TextLine[], hits: readonly number[]): boolean {
  if (isAbsent(resource)) return hits.length === 0;
  if (hits.length === 0 && isTemplate(resource)) return true;
  if (replacesEvery(resource) && hits.length > 0) return replacements(resource, hits, lines).size === 0;
  const text = lines[hits[0] ?? -1]?.text ?? null;
  const expected = expectedLine(resource, text);
  return expected === null || text === expected;
}

/**
 * Returns the file with the line as declared.
 * @param hits positions of the lines to replace or remove; if empty, a line to be present is added
 */
export function edited(resource: ResolvedResource, lines: readonly TextLine[], hits: readonly number[]): TextLine[] {
  if (isAbsent(resource)) return removeLines(lines, new Set(hits));
  if (replacesEvery(resource) && hits.length > 0) {
    const changes = replacements(resource, hits, lines);
    return lines.map((line, index) => ({ ...line, text: changes.get(index) ?? line.text }));
  }
  const [at] = hits;
  if (at === undefined && isTemplate(resource)) return [...lines];
  const text = expectedLine(resource, at === undefined ? null : (lines[at]?.text ?? null));
  if (text === null) return [...lines];
  if (at === undefined) return insertLines(lines, insertionIndex(bodyOf(resource), lines), [text]);
  return lines.map((line, index) => (index === at ? { text, end: line.end } : line));
}

export function diffLineRemoval(resource: ResolvedResource, before: LineBefore, seen: SeenLine): Difference {
  const isRestored = before.lost.some(({ text }) => text !== null);
  const gone = nothingLeft(resource, seen, isRestored);
  if (gone !== null) return gone;
  const { restored } = seen;
  if (restored === null) return nothing('already in its original state');
  const text = (line: string | null): string | null => (line === null ? null : shown(readable(line)));
  return {
    action: 'remove',
    changes: [{ field: 'line', from: text(restored.from), to: text(restored.to) }, ...bitsLost(seen)],
    diff: restored.diff,
    ...(restored.to === null ? {} : { message: 'restores the original state' }),
  };
}
