import { HostFailure } from '../../host/failure.ts';
import { withDirectory } from '../../host/files/acl-entries.ts';
import type { OpenDirectory } from '../../host/files/path-walk.ts';
import type { Machine } from './provider.ts';

/** Calls programs that open a file or directory by its path, without letting other users lead them to another one. */

/**
 * Calls a function with the path of a file or directory for programs, and its path for messages. The programs open a
 * file by its name, so a user who can replace files in its directory could lead them to another file. Such a directory
 * is refused.
 * @param field the field that needs the programs, for messages
 * @throws HostFailure if an unprivileged user can replace the file, or the object is missing
 */
export async function onObject<T>(
  path: string,
  type: 'file' | 'directory',
  field: string,
  { walk }: Pick<Machine, 'walk'>,
  use: (object: string, path: string) => Promise<T>,
): Promise<T> {
  if (type === 'file') {
    const result = walk.within(path, 'null', (parent, name) => {
      expectExclusive(parent, path, field);
      return use(`${parent.path}/${name}`, path);
    });
    if (result === null) throw replaced(path);
    return result;
  }
  const directory = walk.open(path, 'null');
  if (directory === null) throw replaced(path);
  try {
    // The last component is the directory itself, because the programs do not follow a link.
    return await withDirectory(directory, (fd) => use(`/proc/${process.pid}/fd/${fd}/.`, path));
  } finally {
    walk.release(directory);
  }
}

/** @throws HostFailure if an unprivileged user can replace the files of the directory */
export function expectExclusive({ exclusive }: OpenDirectory, path: string, field: string): void {
  if (!exclusive)
    throw new HostFailure(
      `\`${field}\` of ${path} cannot be read or set: a user other than root can replace the files of its directory`,
    );
}

export const replaced = (path: string): HostFailure =>
  new HostFailure(`${path} was replaced during the apply; apply again`);
