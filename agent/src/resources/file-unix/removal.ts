import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { writeFileAtomically, writeSymlinkAtomically } from '../../host/atomic-write.ts';
import { NotADirectory } from '../../host/failure.ts';
import { expectUnchanged, maxContentInMemory, type Ownership } from '../../host/inspect.ts';
import { setFileOwnership } from '../../host/ownership.ts';
import { removeFile } from '../../host/remove.ts';
import { formatMode } from '../ownership.ts';
import { type ContentCopies, type Difference, type Machine, nothing, type Outcome } from '../provider.ts';
import {
  contentText,
  disappearance,
  type FileBefore,
  look,
  pathOf,
  type SeenFile,
  showDiff,
  shown,
  wrongType,
} from './seen.ts';

/** Bringing back what was there before, or taking away what was not. */

export async function observeFileForRemoval(
  resource: ResolvedResource,
  before: FileBefore,
  machine: Machine,
): Promise<SeenFile> {
  try {
    return await look(resource, machine, true, before.was === 'file' ? (before.content?.size ?? null) : null);
  } catch (error) {
    // What we put there is gone, and so is the directory it was in.
    if (!(error instanceof NotADirectory) || before.was !== 'absent') throw error;
    return { found: { type: 'absent' }, ownership: { ownerName: null, groupName: null } };
  }
}

export function diffFileRemoval(
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const path = pathOf(resource);
  const { found } = seen;
  if (found.type === 'directory' || found.type === 'other') {
    if (before.was === 'absent') return nothing('already gone; what is there now was not put there by the agent');
    throw wrongType(path, found);
  }
  if (before.was === 'absent')
    return found.type === 'absent' ? nothing('already gone') : { ...disappearance(path, found), action: 'remove' };
  if (before.was === 'symlink') {
    if (found.type === 'symlink' && found.target === before.target) return nothing('as it was before');
    const changes: FieldChange[] = [
      { field: 'symlink', from: found.type === 'symlink' ? shown(found.target) : null, to: shown(before.target) },
    ];
    return { action: 'remove', changes, diff: null, message: 'what was there before is restored' };
  }
  const contentComesBack = before.content !== null;
  if (found.type === 'absent' && !contentComesBack)
    return nothing('already gone; its content was never changed, so there is none to restore');
  const changes: FieldChange[] = [];
  let diff: string | null = null;
  const now = found.type === 'file' ? found : null;
  if (found.type === 'absent') changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (found.type === 'symlink' && contentComesBack)
    changes.push({ field: 'symlink', from: shown(found.target), to: null });
  if (before.content !== null && now?.content?.sha256 !== before.content.sha256) {
    changes.push({
      field: 'content',
      from: now?.content == null ? null : contentText(now.content),
      to: contentText(before.content),
    });
    diff = showDiff(path, now?.content ?? null, {
      bytes: copies.read(before.content, maxContentInMemory),
      size: before.content.size,
    });
  }
  if (now !== null) {
    if (before.touched.includes('owner') && now.uid !== before.uid)
      changes.push({ field: 'owner', from: seen.ownership.ownerName, to: before.ownerName });
    if (before.touched.includes('group') && now.gid !== before.gid)
      changes.push({ field: 'group', from: seen.ownership.groupName, to: before.groupName });
    if (before.touched.includes('mode') && now.mode !== before.mode)
      changes.push({ field: 'mode', from: formatMode(now.mode), to: formatMode(before.mode) });
  }
  if (changes.length === 0) return nothing('as it was before');
  return { action: 'remove', changes, diff, message: 'what was there before is restored' };
}

export async function removeOrRestoreFile(
  resource: ResolvedResource,
  before: FileBefore,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const path = pathOf(resource);
  const { found } = seen;
  const outcome = machine.walk.within(
    path,
    before.was === 'absent' ? 'null' : 'make',
    async (parent, name): Promise<Outcome> => {
      if (before.was === 'absent') {
        expectUnchanged(parent, name, found);
        removeFile(parent, name);
        machine.changedDirectory(parent.path);
        return {};
      }
      if (before.was === 'symlink') {
        expectUnchanged(parent, name, found);
        writeSymlinkAtomically(parent, name, before);
        machine.changedDirectory(parent.path);
        return {};
      }
      const now = found.type === 'file' ? found : before;
      const back = (field: string, old: number, present: number) => (before.touched.includes(field) ? old : present);
      const target: Ownership = {
        uid: back('owner', before.uid, now.uid),
        gid: back('group', before.gid, now.gid),
        mode: back('mode', before.mode, now.mode),
      };
      const rewrite = difference.changes.some(
        ({ field }) => field === 'content' || field === 'symlink' || field === 'ensure',
      );
      if (!rewrite || before.content === null) {
        await setFileOwnership(parent, name, target);
        return {};
      }
      await writeFileAtomically(parent, name, {
        content: { copyOf: machine.copies.pathOf(before.content) },
        ...target,
        beforeRename: async () => expectUnchanged(parent, name, found),
      });
      machine.changedDirectory(parent.path);
      return {};
    },
  );
  return (await outcome) ?? {};
}
