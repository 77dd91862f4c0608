import { errnoOf, HostFailure, hostFailure } from '../../host/failure.ts';
import { writeFileAtomically } from '../../host/files/atomic-write.ts';
import { expectUnchanged, type Inspected, inspect } from '../../host/files/inspect.ts';
import { makeDirectory } from '../../host/files/make-directory.ts';
import { setDirectoryOwnership } from '../../host/files/ownership.ts';
import { checkPath, type PathWalk } from '../../host/files/path-walk.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import type { Machine } from '../provider/provider.ts';
import { ownershipEdited } from '../text-edit/text-file.ts';

/** Accesses one user's authorized_keys file, only along paths that the user cannot redirect. */

/** The file's owner, from /etc/passwd. */
export interface Owner {
  uid: number;
  gid: number;
  home: string;
}

export const directoryOf = ({ home }: Owner): string => `${home}/.ssh`;
export const fileOf = (owner: Owner): string => `${directoryOf(owner)}/authorized_keys`;

export interface KeyFile {
  directoryIsThere: boolean;
  found: Extract<Inspected, { type: 'absent' | 'file' }>;
  /** The file's bytes, decoded as latin1; empty if the file does not exist. */
  text: string;
}

/**
 * Observes the file.
 * @throws HostFailure if its path leads to an object of a different type, or through an unsafe link
 */
export function lookAtKeys(walk: PathWalk, owner: Owner): KeyFile {
  checkPath(fileOf(owner));
  const directory = walk.open(directoryOf(owner), 'null');
  if (directory === null) return { directoryIsThere: false, found: { type: 'absent' }, text: '' };
  walk.release(directory);
  const path = fileOf(owner);
  const found = inspect(walk, path, true);
  if (found.type === 'absent') return { directoryIsThere: true, found, text: '' };
  if (found.type !== 'file')
    throw new HostFailure(
      `${path} is a ${found.type === 'other' ? found.kind : found.type === 'symlink' ? 'symbolic link' : found.type}, not a file; it is not changed`,
    );
  if (found.content?.bytes == null) throw new HostFailure(`${path} is too large for a list of keys`);
  return { directoryIsThere: true, found, text: found.content.bytes.toString('latin1') };
}

/** Replaces the text. A new directory gets mode 0700 and a new file 0600, both owned by the user. */
export async function writeKeys(owner: Owner, seen: KeyFile, text: string, machine: Machine): Promise<void> {
  if (!seen.directoryIsThere) await makeOwnDirectory(owner, machine);
  const { found } = seen;
  const { uid, gid, mode } = found.type === 'file' ? ownershipEdited(found) : { ...owner, mode: 0o600 };
  const written = machine.walk.within(fileOf(owner), 'null', async (parent, name) => {
    await writeFileAtomically(parent, name, {
      content: { bytes: Buffer.from(text, 'latin1') },
      uid,
      gid,
      mode,
      keepsModeOf: found,
      beforeRename: async () => expectUnchanged(parent, name, found),
    });
    machine.changedDirectory(parent.path);
    return true;
  });
  if ((await written) === null)
    throw new HostFailure(`${directoryOf(owner)} was removed during the apply; apply again`);
}

async function makeOwnDirectory(owner: Owner, machine: Machine): Promise<void> {
  const path = directoryOf(owner);
  const { walk } = machine;
  walk.forget();
  try {
    const made = walk.within(path, 'null', (parent, name) => {
      try {
        makeDirectory(parent.child(name), 0o700);
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') throw error;
      }
      machine.changedDirectory(parent.path);
      return true;
    });
    if (made === null) throw new HostFailure(`the home directory ${owner.home} does not exist`);
    const directory = walk.open(path, 'null');
    if (directory === null) throw new HostFailure(`${path} was removed immediately after its creation`);
    try {
      await setDirectoryOwnership(directory, 'new', { uid: owner.uid, gid: owner.gid, mode: 0o700 });
    } finally {
      walk.release(directory);
    }
    walk.forget();
  } catch (error) {
    throw hostFailure(error, `create the directory ${path}`);
  }
}

/** Removes the file and, if it is empty, the directory, provided that the agent created them. */
export function removeKeyFile(
  owner: Owner,
  seen: KeyFile,
  created: { file: boolean; directory: boolean },
  machine: Machine,
): void {
  const { walk } = machine;
  if (created.file)
    walk.within(fileOf(owner), 'null', (parent, name) => {
      expectUnchanged(parent, name, seen.found);
      removeFile(parent, name);
      machine.changedDirectory(parent.path);
    });
  if (!created.directory || machine.declared(directoryOf(owner))) return;
  walk.forget();
  walk.within(directoryOf(owner), 'null', (parent, name) => {
    removeDirectory(parent, name);
    machine.changedDirectory(parent.path);
  });
}
