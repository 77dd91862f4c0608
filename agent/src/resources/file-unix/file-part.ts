import type { ResolvedResource } from '@muster/protocol/module';
import {
  type Circumstances,
  type ContentCopies,
  type Difference,
  type Machine,
  nothing,
} from '../provider/provider.ts';
import { applyFile, rememberFile } from './apply.ts';
import { diffFile } from './diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from './removal.ts';
import { type FileBefore, look, type SeenFile } from './seen.ts';

/**
 * Returns functions that observe, write, and restore a small file of a resource like a declared file.
 * @param file the file as a resource of the type `file-unix`
 */
export function filePart(file: ResolvedResource) {
  // Not a promise, because no large content is declared, whose hash would be needed.
  const lookAt = (machine: Machine): SeenFile => look(file, machine, true, []) as SeenFile;
  const diff = (seen: SeenFile, circumstances: Pick<Circumstances, 'purpose'>): Difference =>
    diffFile(file, seen, circumstances);
  const changeOf = (seen: SeenFile): Difference => diff(seen, { purpose: 'apply' });
  const record = (seen: SeenFile, known: FileBefore | null, machine: Machine): Promise<FileBefore> =>
    rememberFile(file, seen, changeOf(seen), known, machine);
  const diffRemoval = (before: FileBefore | null, seen: SeenFile, copies: Pick<ContentCopies, 'read'>): Difference =>
    before === null ? nothing() : diffFileRemoval(file, before, seen, copies);

  return {
    look: lookAt,

    /** @param before record of the file; null if the agent has not changed the file, so that it is only observed */
    lookForRemoval: (before: FileBefore | null, machine: Machine): SeenFile | Promise<SeenFile> =>
      before === null ? lookAt(machine) : observeFileForRemoval(file, before, machine),

    /** @throws HostFailure if an object of a different type has this path, unless this is a drift check */
    diff,

    /** Records the file before its first change. @param known record of earlier changes */
    record,

    /** Records the file like `record`. @returns `known` if the file needs no change */
    remember: async (seen: SeenFile, known: FileBefore | null, machine: Machine): Promise<FileBefore | null> =>
      changeOf(seen).action === 'none' ? known : record(seen, known, machine),

    /** Writes the file, unless it is as declared. */
    async write(seen: SeenFile, machine: Machine): Promise<void> {
      const change = changeOf(seen);
      if (change.action !== 'none') await applyFile(file, seen, change, machine);
    },

    /** @param before null if the agent has not changed the file */
    diffRemoval,

    /** Restores the file, unless it is in its original state. */
    async restore(before: FileBefore | null, seen: SeenFile, machine: Machine): Promise<void> {
      const change = diffRemoval(before, seen, machine.copies);
      if (before !== null && change.action !== 'none') await removeOrRestoreFile(file, before, seen, change, machine);
    },
  };
}
