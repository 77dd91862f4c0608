import { errnoOf, HostFailure, hostFailure } from '../../host/failure.ts';
import { asCreated, mayInheritAcl } from '../../host/files/decide-ownership.ts';
import { type Inspected, inspectOpen, type Ownership } from '../../host/files/inspect.ts';
import { setDirectoryOwnership } from '../../host/files/ownership.ts';
import type { OpenDirectory } from '../../host/files/path-walk.ts';
import { makeDirectoryIn } from '../../host/files/temporary-path.ts';
import type { Machine } from '../provider/provider.ts';

/** Creates a directory, or changes its owner, group, and permissions. */

export const createdMode = 0o755;
export const object = { type: 'directory' } as const;

/** @param found null if the directory is missing, or the agent created it only as a parent */
export async function make(
  path: string,
  found: Extract<Inspected, { type: 'directory' }> | null,
  target: Ownership,
  machine: Machine,
): Promise<void> {
  try {
    const { isNew, mayInherit } = await machine.walk.within(path, 'make', async (parent, name) => {
      machine.changedDirectory(parent.path);
      const mayInherit = mayInheritAcl(parent, target);
      if (found !== null) return { isNew: false, mayInherit };
      try {
        await makeDirectoryIn(parent, name, target);
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
      if (isNew) await setDirectoryOwnership(directory, 'new', target);
      else {
        const now = found ?? inspectOpen(directory);
        // If a resource in this apply had created the directory, it would have been observed again, so another process
        // created it.
        if (found === null && !isMadeOnTheWay(directory, now, machine))
          throw new HostFailure(`${path} was created by another process during the apply; apply again`);
        await setDirectoryOwnership(directory, now, target, isMadeOnTheWay(directory, now, machine) && !mayInherit);
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

/** Reports whether the agent created the directory only as a parent, so that it counts as absent. */
const isMadeOnTheWay = (directory: OpenDirectory, found: Ownership, machine: Machine): boolean =>
  (machine.freshDirectories.has(directory.path) || machine.ourDirectories.has(directory.path)) &&
  found.uid === asCreated(createdMode).uid;
