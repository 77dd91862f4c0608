import type { ResolvedResource } from '@muster/protocol/module';
import { insertionIndex, managedLines } from '../text-edit/insertion.ts';
import { endingOf, findPosition, insertLines, type Position, removeLines, type TextLine } from '../text-edit/lines.ts';
import { isAbsent } from '../text-edit/text-file.ts';
import { type Block, beginOf, bodyOf, declaredLines, endOf, findBlock } from './seen.ts';

/** The block before the agent first changed it. */
export type BlockBefore =
  | { was: 'absent' }
  | {
      was: 'present';
      lines: string[];
      index: number;
      above: string | null;
      below: string | null;
      ending: Position['ending'];
    };

/**
 * Returns the file with the declared block.
 * @param block the existing block; null if the declared block is added
 */
export function edited(resource: ResolvedResource, lines: readonly TextLine[], block: Block | null): TextLine[] {
  if (isAbsent(resource)) return block === null ? [...lines] : without(lines, block);
  const declared = declaredLines(resource);
  if (block === null) {
    const index = insertionIndex(bodyOf(resource), lines, managedLines(lines));
    return withBlock(resource, lines, index, declared ?? []);
  }
  return declared === null ? [...lines] : filled(lines, block, declared);
}

/**
 * Returns the file with the block restored to its state before the agent's first change.
 * @returns null if the block is already in that state
 */
export function restored(
  resource: ResolvedResource,
  before: BlockBefore,
  lines: readonly TextLine[],
): { lines: TextLine[]; from: string[] | null; to: string[] | null } | null {
  const found = findBlock(resource, lines);
  const block = found.is === 'whole' ? found.block : null;
  if (before.was === 'absent')
    return block === null ? null : { lines: without(lines, block), from: block.lines, to: null };
  if (block === null) {
    const index = findPosition(lines, before) ?? Math.min(before.index, lines.length);
    return { lines: withBlock(resource, lines, index, before.lines, before), from: null, to: before.lines };
  }
  if (sameLines(block.lines, before.lines)) return null;
  return { lines: filled(lines, block, before.lines), from: block.lines, to: before.lines };
}

export const sameLines = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((line, index) => line === other[index]);

const without = (lines: readonly TextLine[], block: Block): TextLine[] =>
  removeLines(lines, new Set(Array.from({ length: block.lines.length + 2 }, (_, i) => block.index + i)));

const withBlock = (
  resource: ResolvedResource,
  lines: readonly TextLine[],
  index: number,
  inside: readonly string[],
  position?: Position,
): TextLine[] => insertLines(lines, index, [beginOf(resource), ...inside, endOf(resource)], position);

/** Replaces the lines inside a block. Its marker lines do not change. */
function filled(lines: readonly TextLine[], { index, lines: old }: Block, inside: readonly string[]): TextLine[] {
  const end = endingOf(lines);
  const first = index + 1;
  return [...lines.slice(0, first), ...inside.map((text) => ({ text, end })), ...lines.slice(first + old.length)];
}
