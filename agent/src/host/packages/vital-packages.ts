import { release } from 'node:os';
import { readText, realPath } from '../read-system.ts';
import { type DpkgPackage, pathsOf } from './dpkg.ts';

/** Identifies packages that the machine or the agent needs to run. */

/** Returns paths whose packages must not be removed, each with the reason to report. */
function vitalPaths(): [reason: string, paths: string[]][] {
  return [
    ['the agent needs it to run', [process.execPath, process.argv[1] ?? '', ...loadedLibraries()].map(real)],
    ['this machine needs it to run', ['/sbin/init', real('/proc/1/exe'), `/boot/vmlinuz-${release()}`]],
    ['this machine needs it to run', [`/lib/modules/${release()}/kernel`, `/lib/modules/${release()}/modules.builtin`]],
    ['it manages packages', ['/usr/bin/apt-get', '/usr/bin/dpkg', '/usr/bin/dpkg-deb']],
  ];
}

function loadedLibraries(): string[] {
  const paths = readText('/proc/self/maps')?.matchAll(/ (\/\S+)$/gm) ?? [];
  return [...new Set([...paths].map((match) => match[1] as string))];
}

const real = (path: string): string => realPath(path) ?? path;

/** Normalizes paths below `/usr`, which also exist at the root on merged-/usr systems. */
const merged = (path: string): string => path.replace(/^\/usr\/(s?bin|lib[0-9a-z]*)\//, '/$1/');

/** Returns the reason why a package must never be removed, or null if it may be removed. */
export function vitalBecause(found: DpkgPackage): string | null {
  if (found.essential) return 'this machine does not work without it: it is marked as essential';
  const own = new Set(pathsOf(found).map(merged));
  for (const [reason, paths] of vitalPaths())
    for (const path of paths) if (path !== '' && own.has(merged(path))) return `${reason} (${path})`;
  return null;
}
