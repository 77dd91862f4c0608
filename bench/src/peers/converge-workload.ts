import { readFileSync, statSync } from 'node:fs';

/** The desired state: files and directories to create, or packages and units that already exist. */
export type Workload = 'files' | 'machine';

/** The workload's directory on the machine. Each tool has its own subdirectory. */
export const workFolder = '/var/tmp/converge';

/** Returns 20 directories and 200 files of 1 KiB. A directory's content is null. */
export function filesAt(root: string): { path: string; content: string | null }[] {
  return [
    ...Array.from({ length: 20 }, (_, i) => ({ path: `${root}/d${i}`, content: null })),
    ...Array.from({ length: 200 }, (_, i) => ({
      path: `${root}/d${i % 20}/f${i}`,
      content: `${`file ${i}`.padEnd(1023)}\n`,
    })),
  ];
}

/** Returns the first difference from the declared files; null if there is none. */
export function wrongFile(root: string): string | null {
  for (const { path, content } of filesAt(root)) {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode;
    if (mode === undefined) return `${path} does not exist`;
    if ((mode & 0o7777) !== (content === null ? 0o755 : 0o644)) return `${path} has the mode ${mode.toString(8)}`;
    if (content !== null && readFileSync(path, 'utf8') !== content) return `${path} has different content`;
  }
  return null;
}

/** Returns the names of the declared packages or units. */
export const listed = (what: 'packages' | 'units'): string[] =>
  readFileSync(`${workFolder}/${what}`, 'utf8').trim().split('\n');
