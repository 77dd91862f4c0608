import { isNoHome } from '@muster/protocol/module';
import { readMountPoints } from '../../../../lib/src/mount-points.ts';
import type { AccountFiles } from '../../host/accounts/account-files.ts';
import { inspect } from '../../host/files/inspect.ts';
import { isSystemDirectory } from '../directory-unix/purge.ts';
import type { Machine } from '../provider/provider.ts';

/**
 * Returns why the home directory of an account must not be removed with its content; null if it may be, or does not
 * exist.
 */
export function homeFault(
  name: string,
  { home: written, uid }: { home: string; uid: number },
  files: AccountFiles,
  machine: Machine,
): string | null {
  const home = written.replace(/\/$/, '');
  if (!/^(\/(?!\.{1,2}(\/|$))[^/]+)+$/.test(home)) return 'it is not a plain absolute path';
  if (isNoHome(home) || isSystemDirectory(home)) return 'it is a directory of the system';
  const below = `${home}/`;
  const other = [...files.users].find(
    ([user, entry]) => user !== name && (entry.home === home || entry.home.startsWith(below)),
  );
  if (other !== undefined) return `it is, or contains, the home directory of ${other[0]}`;
  if (machine.manages(home) || machine.declared(home)) return 'a resource declares this directory or a path in it';
  const found = inspect(machine.walk, home, false);
  if (found.type === 'absent') return null;
  if (found.type !== 'directory') return 'it is not a directory';
  if (found.uid !== uid) return 'it belongs to another user';
  if (found.movable === true) return 'another user could replace it';
  const mounted = [...readMountPoints()].find((path) => path === home || path.startsWith(below));
  return mounted === undefined ? null : `${mounted} is mounted; unmount it`;
}
