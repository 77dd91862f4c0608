import type { ResolvedResource } from '@muster/protocol/module';
import { type Circumstances, type Difference, nothing, presenceDrift, typeDrift } from '../provider/provider.ts';
import { insertionIndex } from '../text-edit/insertion.ts';
import { insertLines, readable, removeLines, type TextLine } from '../text-edit/lines.ts';
import {
  awaitsFile,
  awaitsProgram,
  bitsLost,
  changedLines,
  isAbsent,
  linesOf,
  notAFile,
  shown,
} from '../text-edit/text-file.ts';
import type { LineBefore } from './before.ts';
import { bodyOf, expectedLine, type SeenLine } from './seen.ts';

export function diffLine(
  resource: ResolvedResource,
  seen: SeenLine,
  circumstances: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const absent = isAbsent(resource);
  if (seen.type !== 'file' && seen.type !== 'absent') {
    if (circumstances.purpose !== 'drift') throw notAFile(resource, seen);
    return absent ? presenceDrift() : typeDrift({ type: seen.type }, 'file');
  }
  const changes = (from: string | null, to: string | null): Difference['changes'] => [
    { field: 'line', from: from === null ? null : shown(from), to: to === null ? null : shown(to) },
    ...bitsLost(seen),
  ];
  const after = (hits: readonly number[]): string | null =>
    changedLines(resource, seen, edited(resource, linesOf(seen), hits));
  if (absent) {
    if (seen.hits.length === 0) return nothing();
    const from = seen.hits.map(({ text }) => readable(text)).join('\n');
    return { action: 'remove', changes: changes(from, null), diff: after(seen.hits.map(({ index }) => index)) };
  }
  const last = seen.hits.at(-1);
  if (last === undefined && seen.type === 'file' && bodyOf(resource).backrefs === true)
    return nothing('no line matches, and with `backrefs` no line is added');
  const among = circumstances.purpose === 'drift' ? 1 : seen.hits.length;
  const expected = expectedLine(resource, last?.text ?? null, among);
  if (last !== undefined && last.text === expected) return nothing();
  const { awaits = [] } = awaitsFile(resource, seen, circumstances);
  awaits.push(...awaitsProgram(resource, seen, circumstances));
  return {
    action: last === undefined ? 'create' : 'update',
    changes: changes(
      last === undefined ? null : readable(last.text),
      expected === null ? bodyOf(resource).line : readable(expected),
    ),
    diff: after(last === undefined ? [] : [last.index]),
    ...(awaits.length === 0 ? {} : { awaits }),
  };
}

/**
 * Returns the file with the line as declared.
 * @param hits positions of the lines to replace or remove; if empty, a line to be present is added
 */
export function edited(resource: ResolvedResource, lines: readonly TextLine[], hits: readonly number[]): TextLine[] {
  if (isAbsent(resource)) return removeLines(lines, new Set(hits));
  const [at] = hits;
  const text = expectedLine(resource, at === undefined ? null : (lines[at]?.text ?? null));
  if (text === null) return [...lines];
  if (at === undefined) return insertLines(lines, insertionIndex(bodyOf(resource), lines), [text]);
  return lines.map((line, index) => (index === at ? { text, end: line.end } : line));
}

export function diffLineRemoval(resource: ResolvedResource, before: LineBefore, seen: SeenLine): Difference {
  if (seen.type === 'absent') return nothing('already removed, with its file');
  if (seen.type !== 'file') {
    if (before.lost.some(({ text }) => text !== null)) throw notAFile(resource, seen);
    return nothing('already removed; the path is no longer a file');
  }
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
