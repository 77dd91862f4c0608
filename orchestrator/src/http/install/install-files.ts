import { hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * The agent's installation files, listed once at startup. Requests look up names in this table; names are never used as
 * paths.
 */
export interface InstallFile {
  readonly path: string;
  readonly size: number;
  /** Checksum in hex. */
  readonly sha256: string;
  readonly type: string;
}
export type InstallFiles = ReadonlyMap<string, InstallFile>;

const scriptName = 'agent.sh';

const types: Readonly<Record<string, string>> = {
  SHA256SUMS: 'text/plain; charset=utf-8',
  deb: 'application/vnd.debian.binary-package',
  sh: 'text/x-shellscript; charset=utf-8',
  service: 'text/plain; charset=utf-8',
};

const typeOf = (name: string): string => types[name.split('.').at(-1) as string] ?? 'application/octet-stream';

/** Returns the default folders: next to the program, and in the repository clone from which it runs. */
const defaultFolders = (program: string): readonly string[] => [
  join(dirname(program), '../share/muster/install'),
  ...(program.includes('/node_modules/') ? [join(program.split('/node_modules/')[0] as string, 'dist/install')] : []),
];

/**
 * Reads the table of installation files.
 * @param folder the configured folder; null for a default folder
 * @param program path of the running program
 * @returns the table; empty if the folder or its script does not exist
 * @throws Error if the configured folder has no checksum file, or a line of that file is invalid
 */
export async function readInstallFiles(folder: string | null, program: string): Promise<InstallFiles> {
  for (const directory of folder === null ? defaultFolders(program) : [folder]) {
    const sums = await readFile(join(directory, 'SHA256SUMS'), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (folder === null && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
      throw new Error(`packages_dir: ${error.message}`);
    });
    if (sums !== null) return await tableOf(directory, sums, program);
  }
  return new Map();
}

async function tableOf(folder: string, sums: string, program: string): Promise<InstallFiles> {
  const table = new Map<string, InstallFile>();
  for (const line of sums.split('\n').filter((text) => text !== '')) {
    const [, sha256, name] = /^([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9.+~_-]*)$/.exec(line) ?? [];
    if (sha256 === undefined || name === undefined)
      throw new Error(
        `${join(folder, 'SHA256SUMS')}: ${JSON.stringify(line)} is not a checksum followed by a plain file name`,
      );
    // If the folder has no copy of the running program, serves the program's own file.
    const paths = [join(folder, name), ...(name === 'muster' && basename(program) === 'muster' ? [program] : [])];
    for (const path of paths) {
      const size = await sizeOf(path);
      if (size === null) continue;
      table.set(name, {
        path,
        size,
        sha256,
        type: typeOf(name),
      });
      break;
    }
  }
  for (const name of [scriptName, 'SHA256SUMS']) {
    const path = join(folder, name);
    const content = (await sizeOf(path)) === null ? null : await readFile(path);
    // Without the script, which installs all other files, the folder is useless.
    if (content === null) return new Map();
    table.set(name, { path, size: content.length, sha256: hash('sha256', content, 'hex'), type: typeOf(name) });
  }
  return table;
}

/** @returns the size of a regular file; null if the path is not a regular file */
async function sizeOf(path: string): Promise<number | null> {
  const found = await lstat(path).catch(() => null);
  return found?.isFile() ? found.size : null;
}

/**
 * Opens a file in the table.
 * @returns null if the file has changed since the table was read, for example during an upgrade
 */
export async function openInstallFile({ path, size }: InstallFile) {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
  if (handle === null) return null;
  const found = await handle.stat().catch(() => null);
  if (found?.isFile() && found.size === size) return handle;
  await handle.close();
  return null;
}
