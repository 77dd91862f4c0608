import { posix } from 'node:path';
import { hostFailure } from '../../host/failure.ts';
import { setProtectedOwnership } from '../../host/files/ownership.ts';
import { fstabChanged } from '../../host/mounts.ts';
import { makeSwapFile, type SwapFile, swapOff, swapOn } from '../../host/swap.ts';
import { moveEntry, removeEntry } from '../../host/trees/entries.ts';
import { besideName } from '../../host/trees/tree-names.ts';
import { folderOf, trustedPath } from '../archive/place.ts';
import { declaredEntries, fstab, parseEntry, swapEntries } from '../mount-unix/fstab.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { changedFields, type Machine } from '../provider/provider.ts';
import type { TextLine } from '../text-edit/lines.ts';
import { editLines, restoredPlaced } from '../text-edit/placed-lines.ts';
import { diffSwap, diffSwapRemoval, ownership } from './diff.ts';
import { declaredEntry, isAbsent, look, type SeenSwap, type SwapBefore, sizeOf, swaps } from './seen.ts';

/** Fields whose change requires that the file be recreated. The file's content is irrelevant. */
const fileFields = ['ensure', 'size', 'uuid'];

/** A swap file, its activation, and its line in /etc/fstab. Each of them is observed, changed, and restored. */
export const swap = defineProvider<'swap', SeenSwap, SwapBefore>({
  type: 'swap',
  fields: { path: 'text', size: 'text?', priority: 'integer?', options: 'text?', ensure: 'text?' },
  path: ({ body }) => body.path,
  watched: ({ body }) => [body.path, fstab],

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffSwap,

  async remember(_resource, { file, lines, live, fstab: { type } }, _difference, before) {
    if (before !== null) return before;
    return {
      file: file === null ? null : withoutHoles(file),
      lines: lines.length === 0 ? { was: 'absent', made: type === 'absent' } : { was: 'present', lines },
      live,
    };
  },

  async apply(resource, seen, difference, machine) {
    const { path } = resource.body;
    const entryOf = (lines: readonly TextLine[]) => declaredEntry(resource, lines);
    await change({
      ...{ path, seen, machine, changing: changedFields(difference) },
      file: isAbsent(resource) ? null : { ...ownership, size: sizeOf(resource) },
      edit: (lines) => declaredEntries(swapEntries(path, lines), entryOf(lines), lines),
      use: isAbsent(resource) ? null : (entryOf(seen.lines)?.options ?? ''),
    });
    return {};
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: diffSwapRemoval,

  async remove(resource, { file, lines: record, live }, seen, difference, machine) {
    const { path } = resource.body;
    const earlier = record.was === 'present' ? (parseEntry(record.lines[0]?.text ?? '')?.options ?? '') : '';
    const options = earlier.split(',').filter((option) => option !== '' && !option.startsWith('pri='));
    const priority = live !== null && live >= 0 ? [`pri=${live}`] : [];
    await change({
      ...{ path, seen, machine, file, changing: changedFields(difference) },
      edit: (lines) => restoredPlaced(swapEntries(path, lines), record, lines),
      removesEmpty: record.was === 'absent' && record.made,
      use: live === null ? null : [...options, ...priority].join(',') || 'sw',
    });
    return {};
  },
});

const withoutHoles = ({ hasHoles: _, ...file }: NonNullable<SeenSwap['file']>): SwapFile => file;

interface Change {
  path: string;
  seen: SeenSwap;
  changing: ReadonlySet<string>;
  /** The desired file; null for none. */
  file: (Omit<SwapFile, 'uuid' | 'label'> & Partial<SwapFile>) | null;
  edit: (lines: readonly TextLine[]) => TextLine[];
  removesEmpty?: boolean;
  /** Options for activating the file; null if it is not activated. */
  use: string | null;
  machine: Machine;
}

/**
 * Changes the file, its line, and its activation. Deactivates the file first, so that an observation shows that it must
 * be activated again.
 */
async function change({ path, seen, changing, file, edit, removesEmpty = false, use, machine }: Change): Promise<void> {
  const isNew = fileFields.some((field) => changing.has(field));
  const ends =
    seen.live !== null && (isNew || ['active', 'live_priority', 'options'].some((field) => changing.has(field)));
  machine.stale(swaps);
  if (ends) await swapOff(path, machine);
  const folder = trustedPath(machine.walk, folderOf(path), file === null ? 'null' : 'make');
  if (folder !== null) {
    const place = `${folder}/${posix.basename(path)}`;
    const fresh = `${folder}/${besideName(posix.basename(path), 'new')}`;
    removeEntry(fresh);
    if (isNew) {
      // The file system may not have enough space for both files.
      removeEntry(place);
      machine.changedDirectory(folder);
    }
    if (isNew && file !== null)
      try {
        await makeSwapFile(fresh, file, machine);
        moveEntry(fresh, place);
      } finally {
        removeEntry(fresh);
      }
    else if (file !== null && (changing.has('owner') || changing.has('mode'))) own(place, file);
  }
  await editLines(fstab, machine, edit, { removesEmpty, missingDirectory: 'there is no directory /etc' });
  await fstabChanged(machine);
  if (use !== null && (seen.live === null || ends)) await swapOn(path, use, machine);
}

function own(path: string, file: { uid: number; gid: number; mode: number }): void {
  try {
    setProtectedOwnership(path, file);
  } catch (error) {
    throw hostFailure(error, `set the owner and permissions of ${path}`);
  }
}
