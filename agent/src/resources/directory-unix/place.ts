import { errnoOf, HostFailure, hostFailure } from '../../host/failure.ts';
import { lacksAclPrograms, readDirectoryAcl, writeAcl } from '../../host/files/acl-entries.ts';
import { asCreated, mayInheritAcl } from '../../host/files/decide-ownership.ts';
import { type Inspected, inspectOpen, type Ownership } from '../../host/files/inspect.ts';
import { type NewOwnership, setDirectoryOwnership } from '../../host/files/ownership.ts';
import type { OpenDirectory } from '../../host/files/path-walk.ts';
import { makeDirectoryIn } from '../../host/files/temporary-path.ts';
import { type SeenAcl, seenAcl } from '../provider/acl.ts';
import type { Machine } from '../provider/provider.ts';

/** Creates a directory, or changes its owner, group, permissions, and ACL. */

export const createdMode = 0o755;
export const object = { type: 'directory' } as const;

/**
 * Reads the ACL of a directory, if it exists.
 * @param found the inspected directory, or the one at the target of a link that the path walk follows
 * @param acl declared entries
 */
export async function lookAtAcl(
  path: string,
  found: Inspected,
  acl: readonly string[],
  { walk, accounts }: Pick<Machine, 'walk' | 'accounts'>,
): Promise<SeenAcl> {
  const directory = found.type !== 'directory' || lacksAclPrograms() ? null : walk.open(path, 'null');
  if (directory === null) return seenAcl(acl, null, accounts);
  try {
    return seenAcl(acl, await readDirectoryAcl(directory), accounts);
  } finally {
    walk.release(directory);
  }
}

/**
 * @param found null if the directory is missing, or the agent created it only as a parent
 * @param entries the entries of the ACL besides those of the permissions; null to keep the ACL
 */
export async function make(
  path: string,
  found: Extract<Inspected, { type: 'directory' }> | null,
  target: NewOwnership,
  machine: Machine,
  entries: readonly string[] | null = null,
): Promise<void> {
  const finish = entries === null ? undefined : (open: string) => writeAcl(open, path, target.mode, entries);
  try {
    const { isNew, mayInherit } = await machine.walk.within(path, 'make', async (parent, name) => {
      machine.changedDirectory(parent.path);
      const mayInherit = mayInheritAcl(parent, target);
      if (found !== null) return { isNew: false, mayInherit };
      try {
        await makeDirectoryIn(parent, name, target, mayInherit && finish === undefined);
        return { isNew: true, mayInherit };
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') throw error;
        return { isNew: false, mayInherit };
      }
    });
    const directory = machine.walk.open(path, 'null');
    if (directory === null) throw new HostFailure('the directory was removed immediately after its creation');
    try {
      // Uses the open directory, because its path may already lead elsewhere.
      if (isNew) await setDirectoryOwnership(directory, 'new', target, false, finish);
      else {
        const now = found ?? inspectOpen(directory);
        // If a resource in this apply had created the directory, it would have been observed again, so another process
        // created it.
        if (found === null && !isMadeOnTheWay(directory, now, machine))
          throw new HostFailure(`${path} was created by another process during the apply; apply again`);
        const isInherited = isMadeOnTheWay(directory, now, machine) && !mayInherit;
        await setDirectoryOwnership(directory, now, target, isInherited, finish);
      }
      machine.changedDirectory(directory.path);
    } finally {
      machine.walk.release(directory);
    }
    // The owner decides whether the path walk follows links below this directory.
    machine.walk.forget();
  } catch (error) {
    throw hostFailure(error, `create the directory ${path} as declared`);
  }
}

/** Reports whether the agent created the directory only as a parent. Such a directory counts as absent. */
const isMadeOnTheWay = (directory: OpenDirectory, found: Ownership, machine: Machine): boolean =>
  (machine.freshDirectories.has(directory.path) || machine.ourDirectories.has(directory.path)) &&
  found.uid === asCreated(createdMode).uid;
