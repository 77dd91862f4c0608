import { readFileSync, realpathSync } from 'node:fs';
import { release } from 'node:os';
import { type DpkgPackage, pathsOf } from './dpkg.ts';

/** Packages that the machine, or the agent on it, does not go on without. */

/** By what to say of it: the paths whose package must stay. */
function vitalPaths(): [what: string, paths: string[]][] {
  return [
    ['the agent itself runs with it', [process.execPath, process.argv[1] ?? '', ...mapped()].map(real)],
    ['this machine runs on it', ['/sbin/init', real('/proc/1/exe'), `/boot/vmlinuz-${release()}`]],
    ['this machine runs on it', [`/lib/modules/${release()}/kernel`, `/lib/modules/${release()}/modules.builtin`]],
    ['packages are managed with it', ['/usr/bin/apt-get', '/usr/bin/dpkg', '/usr/bin/dpkg-deb']],
  ];
}

/** Libraries that this process has loaded. */
function mapped(): string[] {
  try {
    const paths = readFileSync('/proc/self/maps', 'utf8').matchAll(/ (\/\S+)$/gm);
    return [...new Set([...paths].map((match) => match[1] as string))];
  } catch {
    return [];
  }
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** One name for what may be below `/usr` or not: the two are the same place since they were merged. */
const merged = (path: string): string => path.replace(/^\/usr\/(s?bin|lib[0-9a-z]*)\//, '/$1/');

/** Why a package must not be removed, whoever asks for it; null when it may. */
export function vitalBecause(found: DpkgPackage): string | null {
  if (found.essential) return 'this machine does not work without it: it is marked as essential';
  const own = new Set(pathsOf(found).map(merged));
  for (const [what, paths] of vitalPaths())
    for (const path of paths) if (path !== '' && own.has(merged(path))) return `${what} (${path})`;
  return null;
}
