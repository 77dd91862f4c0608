import { HostFailure } from '../../host/failure.ts';
import { normalizedValue, parameterPath } from '../../host/kernel-parameter.ts';
import { fileStatus, namesIn, readText } from '../../host/read-system.ts';
import type { Database } from '../provider/provider.ts';

/** Reads the files that set kernel parameters at boot, as in sysctl.d(5). */

export interface SysctlFile {
  name: string;
  path: string;
  text: string;
}

/** In order of precedence. If two files have the same name, only the one in the earlier directory is read. */
const directories = ['/etc/sysctl.d', '/run/sysctl.d', '/usr/local/lib/sysctl.d', '/usr/lib/sysctl.d', '/lib/sysctl.d'];

/** All files, in the order in which they are read at boot. */
export const sysctlFiles: Database<SysctlFile[]> = {
  name: 'sysctl files',
  read() {
    const byName = new Map<string, SysctlFile>();
    for (const directory of directories)
      for (const name of namesIn(directory)) {
        if (!name.endsWith('.conf') || byName.has(name)) continue;
        const path = `${directory}/${name}`;
        // A link to /dev/null counts as empty. Reading a FIFO would never end.
        const text = fileStatus(path)?.isFile === true ? readText(path) : null;
        byName.set(name, { name, path, text: text ?? '' });
      }
    return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  },
};

/**
 * @param path path of a parameter below /proc/sys
 * @returns the last value in the text, or null if the text does not set the parameter
 */
export function valueIn(text: string, path: string): string | null {
  let value: string | null = null;
  for (const line of text.split('\n')) {
    const found = /^\s*-?\s*([^#;=\s][^=]*?)\s*=(.*)$/.exec(line);
    if (found !== null && names(found[1] as string, path)) value = normalizedValue(found[2] as string);
  }
  return value;
}

/** Reports whether a key in a file, possibly a pattern, matches the parameter. */
function names(key: string, path: string): boolean {
  try {
    const own = parameterPath(key);
    if (!/[*?[]/.test(own)) return own === path;
    const pattern = own
      .replace(/[.+^${}()|\\[\]]/g, '\\$&')
      .replaceAll('*', '[^/]*')
      .replaceAll('?', '[^/]');
    return new RegExp(`^${pattern}$`).test(path);
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}

/** Returns the path of the last file that sets the parameter after the agent's file, if it sets another value; otherwise null. */
export function laterFile(
  files: readonly SysctlFile[],
  path: string,
  ownName: string,
  declared: string,
): string | null {
  const setting = files.filter(({ name, text }) => name > ownName && valueIn(text, path) !== null).at(-1);
  return setting !== undefined && valueIn(setting.text, path) !== declared ? setting.path : null;
}
