import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import type { Machine } from '../provider/provider.ts';
import { insertionIndex } from '../text-edit/insertion.ts';
import { type Position, positionOf, type TextLine } from '../text-edit/lines.ts';
import { isAbsent, linesOf, lookAtText, pathOf, type SeenText } from '../text-edit/text-file.ts';
import { bodyOf, hitsIn, maxLost, maxSaved, replacesEvery, savedSize } from './declared.ts';
import { replacements } from './every.ts';

/**
 * A line that the resource manages: one that matches `match`, or equals the declared or the previously declared line.
 */
export interface Hit extends Position {
  text: string;
  end: TextLine['end'];
  /** If every line is replaced, the text that replaces this one. */
  to?: string;
}

export interface SeenLine extends SeenText {
  /**
   * Managed lines in file order. If the line must be present, contains only the last few lines, because only the last
   * one changes. If every line is replaced, contains the lines that change.
   */
  hits: Hit[];
  /** If every line is replaced, the number of managed lines, including lines that are already as declared. */
  managed?: number;
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

export function look(resource: ResolvedResource, previous: string | null, machine: Pick<Machine, 'walk'>): SeenLine {
  const seen = lookAtText(resource, machine);
  const lines = linesOf(seen);
  const all = hitsIn(resource, previous, lines);
  const every = replacesEvery(resource) ? replacements(resource, all, lines) : null;
  const managed = every === null ? (isAbsent(resource) ? all : all.slice(-maxHits)) : [...every.keys()];
  const hits = managed.map((index): Hit => {
    const { text, end } = lines[index] as TextLine;
    const to = every?.get(index);
    return { text, end, ...positionOf(lines, index, 1), ...(to === undefined ? {} : { to }) };
  });
  const size = hits.reduce((sum, hit) => sum + savedSize(hit, hit.to), 0);
  if (size > maxSaved || (isAbsent(resource) && hits.length > maxLost))
    throw new HostFailure(
      `the lines to change in ${pathOf(resource)} exceed ${size > maxSaved ? `${maxSaved / 1024} KiB` : `${maxLost} lines`}, the most that can be restored later; nothing was changed. Use a narrower \`match\`.`,
    );
  const isAdded = all.length === 0 && !isAbsent(resource);
  const end = positionOf(lines, isAdded ? insertionIndex(bodyOf(resource), lines) : lines.length, 0);
  const { validate } = bodyOf(resource);
  const missing = validate == null || isAbsent(resource) ? null : missingProgram(validate);
  const count = every === null ? {} : { managed: all.length };
  return {
    ...seen,
    hits,
    ...count,
    end,
    previous,
    restored: null,
    ...(missing === null ? {} : { missingProgram: missing }),
  };
}
