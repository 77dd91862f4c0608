import { HostFailure } from '../../host/failure.ts';
import { writeFileAtomically } from '../../host/files/atomic-write.ts';
import { asCreated } from '../../host/files/decide-ownership.ts';
import { expectUnchanged, inspect } from '../../host/files/inspect.ts';
import { removeFile } from '../../host/files/remove.ts';
import type { Machine } from '../provider/provider.ts';
import {
  findPosition,
  insertLines,
  joinLines,
  type Position,
  positionOf,
  removeLines,
  splitLines,
  type TextLine,
} from './lines.ts';
import { ownershipEdited } from './text-file.ts';

/** Lines of a system file, such as /etc/fstab, that one resource owns. All other lines stay unchanged. */

/** A line with its position, so that it can be restored there. */
export type PlacedLine = {
  text: string;
  end: TextLine['end'];
  index: number;
  above: string | null;
  below: string | null;
  ending: Position['ending'];
};

/** The lines before the agent's first change. `made`: whether the agent created the file. */
export type LinesBefore = { was: 'absent'; made: boolean } | { was: 'present'; lines: PlacedLine[] };

export const placedLine = (lines: readonly TextLine[], index: number): PlacedLine => ({
  ...(lines[index] as TextLine),
  ...positionOf(lines, index, 1),
});

/**
 * Returns the file with the resource's lines as they were before the agent's first change.
 * @param own positions of the resource's lines
 */
export function restoredPlaced(own: readonly number[], before: LinesBefore, lines: readonly TextLine[]): TextLine[] {
  let after = removeLines(lines, new Set(own));
  const missing = before.was === 'absent' ? [] : before.lines.map((line) => ({ ...line }));
  // The neighbors of adjacent lines determine their position.
  for (let i = missing.length - 2; i >= 0; i--) {
    const [line, next] = [missing[i] as PlacedLine, missing[i + 1] as PlacedLine];
    if (next.index === line.index + 1) line.below = next.below;
  }
  for (const { text, end, ...position } of missing) {
    const index = findPosition(after, position) ?? Math.min(position.index, after.length);
    after = insertLines(after, index, [text], { ending: position.ending, ends: [end] });
  }
  return after;
}

/**
 * Changes the file's current lines, because another resource may have changed it since the observation. Creates a
 * missing file with mode 0644.
 * @param options `removesEmpty`: whether to remove the file if no line is left; `missingDirectory`: message if the
 * file's directory does not exist
 */
export async function editLines(
  file: string,
  machine: Machine,
  change: (lines: readonly TextLine[]) => TextLine[],
  { removesEmpty = false, missingDirectory }: { removesEmpty?: boolean; missingDirectory: string },
): Promise<void> {
  const found = inspect(machine.walk, file, true);
  const bytes = found.type === 'absent' ? Buffer.alloc(0) : found.type === 'file' ? found.content?.bytes : null;
  if (bytes == null) throw new HostFailure(`${file} was replaced during the apply; apply again`);
  const after = joinLines(change(splitLines(bytes)));
  const goes = removesEmpty && after.length === 0 && found.type === 'file';
  if (!goes && after.equals(bytes)) return;
  const written = machine.walk.within(file, 'null', async (parent, name) => {
    if (goes) {
      expectUnchanged(parent, name, found);
      removeFile(parent, name);
    } else
      await writeFileAtomically(parent, name, {
        content: { bytes: after },
        ...(found.type === 'file' ? ownershipEdited(found) : asCreated(0o644)),
        keepsAclOf: found,
        keepsModeOf: found,
        beforeRename: async () => expectUnchanged(parent, name, found),
      });
    machine.changedDirectory(parent.path);
    return true;
  });
  if ((await written) === null) throw new HostFailure(missingDirectory);
}
