import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import type { Machine } from '../provider/provider.ts';
import { inBytes, type Position, positionOf, splitLines, type TextLine } from '../text-edit/lines.ts';
import { linesOf, lookAtText, pathOf, type SeenText } from '../text-edit/text-file.ts';

export type Body = ResourceBodies['block-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;

/** Returns the first marker line of the block. */
export const beginOf = (resource: ResolvedResource): string => inBytes(`# BEGIN muster: ${bodyOf(resource).marker}`);
export const endOf = (resource: ResolvedResource): string => inBytes(`# END muster: ${bodyOf(resource).marker}`);

/** Returns the declared lines, encoded as in `TextLine`, or null if the content is not managed. */
export function declaredLines(resource: ResolvedResource): string[] | null {
  const { content } = bodyOf(resource);
  return content == null ? null : splitLines(Buffer.from(content, 'utf8')).map(({ text }) => text);
}

/** A complete block; `lines` excludes its marker lines. */
export interface Block extends Position {
  lines: string[];
}

export type Found = { is: 'whole'; block: Block } | { is: 'none' } | { is: 'broken'; how: string };

export interface SeenBlock extends SeenText {
  found: Found;
  /** Position at the end of the file. */
  end: Position;
  /** For a removal, the changes that restore the file. Null if nothing has to be restored. */
  restored: { from: string[] | null; to: string[] | null; diff: string | null } | null;
  /** The program that `validate` would run, if it is missing. */
  missingProgram?: string;
}

export function findBlock(resource: ResolvedResource, lines: readonly TextLine[]): Found {
  const [begin, end] = [beginOf(resource), endOf(resource)];
  const [begins, ends] = [begin, end].map((marker) =>
    lines.flatMap(({ text }, index) => (text.trimEnd() === marker ? [index] : [])),
  ) as [number[], number[]];
  if (begins.length === 0 && ends.length === 0) return { is: 'none' };
  const [from, to] = [begins[0], ends[0]];
  if (from === undefined)
    return { is: 'broken', how: `line ${(to as number) + 1} ends the block, but no line begins it` };
  if (to === undefined) return { is: 'broken', how: `line ${from + 1} begins the block, but no line ends it` };
  if (begins.length > 1 || ends.length > 1)
    return { is: 'broken', how: `the block occurs more than once, from line ${from + 1} on` };
  if (to < from) return { is: 'broken', how: `line ${to + 1} ends the block before line ${from + 1} begins it` };
  const inside = lines.slice(from + 1, to).map(({ text }) => text);
  return { is: 'whole', block: { ...positionOf(lines, from, to - from + 1), lines: inside } };
}

export function look(resource: ResolvedResource, machine: Pick<Machine, 'walk'>): SeenBlock {
  const seen = lookAtText(resource, machine);
  const lines = linesOf(seen);
  const { validate } = bodyOf(resource);
  const missing = validate == null ? null : missingProgram(validate);
  return {
    ...seen,
    found: findBlock(resource, lines),
    end: positionOf(lines, lines.length, 0),
    restored: null,
    ...(missing === null ? {} : { missingProgram: missing }),
  };
}

export const brokenBlock = (resource: ResolvedResource, how: string): HostFailure =>
  new HostFailure(
    `the block ${bodyOf(resource).marker} of ${pathOf(resource)} is broken: ${how}. Repair or remove its lines "# BEGIN muster: ${bodyOf(resource).marker}" and "# END muster: …" by hand.`,
  );
