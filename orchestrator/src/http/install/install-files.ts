import { hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * What machines install the agent from, as a table that is read once: names, with where each file is and what its sum
 * has to be. Nothing that is asked for ever becomes a path.
 */
export interface InstallFile {
  readonly path: string;
  readonly size: number;
  /** Hex. */
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

/** Where the folder is when the configuration names none: beside the program, or in the clone that it runs from. */
const usualFolders = (program: string): readonly string[] => [
  join(dirname(program), '../share/muster/install'),
  ...(program.includes('/node_modules/') ? [join(program.split('/node_modules/')[0] as string, 'dist/install')] : []),
];

/**
 * Reads the table.
 * @param folder what the configuration names; null: one of the usual ones
 * @param program the file that this process runs from
 * @returns empty when there is no such folder, or it lacks the script
 * @throws Error when the folder that was named has none, or a sum is no sum
 */
export async function readInstallFiles(folder: string | null, program: string): Promise<InstallFiles> {
  for (const place of folder === null ? usualFolders(program) : [folder]) {
    const sums = await readFile(join(place, 'SHA256SUMS'), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (folder === null && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
      throw new Error(`packages_dir: ${error.message}`);
    });
    if (sums !== null) return await tableOf(place, sums, program);
  }
  return new Map();
}

async function tableOf(folder: string, sums: string, program: string): Promise<InstallFiles> {
  const table = new Map<string, InstallFile>();
  for (const line of sums.split('\n').filter((text) => text !== '')) {
    const [, sha256, name] = /^([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9.+~_-]*)$/.exec(line) ?? [];
    if (sha256 === undefined || name === undefined)
      throw new Error(`${join(folder, 'SHA256SUMS')}: ${JSON.stringify(line)} is not a sum with a plain name`);
    // The program is not there a second time: it is what runs here.
    const places = [join(folder, name), ...(name === 'muster' && basename(program) === 'muster' ? [program] : [])];
    for (const path of places) {
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
    // Without the script nobody would come for the rest.
    if (content === null) return new Map();
    table.set(name, { path, size: content.length, sha256: hash('sha256', content, 'hex'), type: typeOf(name) });
  }
  return table;
}

/** Null for what is no file of its own: not there, a folder, a link. */
async function sizeOf(path: string): Promise<number | null> {
  const found = await lstat(path).catch(() => null);
  return found?.isFile() ? found.size : null;
}

/**
 * Opens a file of the table.
 * @returns null when it is not what it was when the table was read: an upgrade is under way
 */
export async function openInstallFile({ path, size }: InstallFile) {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
  if (handle === null) return null;
  const found = await handle.stat().catch(() => null);
  if (found?.isFile() && found.size === size) return handle;
  await handle.close();
  return null;
}
