import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import {
  filePathFault,
  folderLimits,
  type ModuleFile,
  type ModuleFolder,
  moduleFileName,
  templateFilesOf,
} from '@muster/protocol/module';
import { type Pack, pack } from 'tar-stream';
import { CliError, exits } from '../../exit.ts';

/** Reads and packs module folders. */

/** A module folder on this machine. */
export interface LocalFolder {
  readonly directory: string;
  /** The content of `module.yml`. */
  readonly bytes: Uint8Array;
  readonly folder: ModuleFolder;
  /** Total size of all files, in bytes. */
  readonly size: number;
}

const faulty = (message: string, remedy: string): CliError =>
  new CliError(exits.failed, 'module_invalid', message, remedy);

/** Reports whether a path is a directory that contains `module.yml`. */
async function isModuleFolder(path: string): Promise<boolean> {
  const isDirectory = (await lstat(path).catch(() => null))?.isDirectory() === true;
  return isDirectory && (await lstat(join(path, moduleFileName)).catch(() => null))?.isFile() === true;
}

/** Reads the names and sizes of the files next to a module, and the content of its templates. Skips `.git`. */
export async function readFolder(directory: string): Promise<LocalFolder> {
  const files = new Map<string, ModuleFile>();
  let size = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = relative(directory, join(entry.parentPath, entry.name));
    if (path === moduleFileName || path === '.git' || path.startsWith('.git/') || entry.isDirectory()) continue;
    if (!entry.isFile())
      throw faulty(`${join(directory, path)} is not a plain file`, 'Replace links with the files that they point to.');
    const fault = filePathFault(path);
    if (fault !== undefined) throw faulty(`the path ${JSON.stringify(path)} ${fault}`, 'Rename the file.');
    const found = await lstat(join(directory, path));
    size += found.size;
    files.set(path, { path, sha256: '', size: found.size, executable: (found.mode & 0o100) !== 0 });
  }
  if (files.size > folderLimits.files || size > folderLimits.bytes)
    throw faulty(
      `${directory} has ${files.size} files with ${Math.ceil(size / 1024 / 1024)} MiB`,
      `A module may have ${folderLimits.files} files with ${folderLimits.bytes / 1024 / 1024} MiB.`,
    );
  const bytes = await readFile(join(directory, moduleFileName));
  const texts = new Map<string, string>();
  for (const path of templateFilesOf(bytes, files)) {
    if ((files.get(path)?.size ?? 0) > folderLimits.templateBytes) continue;
    try {
      texts.set(path, new TextDecoder('utf-8', { fatal: true }).decode(await readFile(join(directory, path))));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }
  return { directory, bytes, size, folder: { files, textOf: (path) => texts.get(path) ?? null } };
}

/** Reads a module folder, if the path refers to one. */
export const folderAt = async (path: string): Promise<LocalFolder | null> =>
  (await isModuleFolder(path)) ? readFolder(path) : null;

/** Returns the files of a folder with their content hashes. */
export async function hashedFiles({ directory, folder }: LocalFolder): Promise<ModuleFile[]> {
  const files: ModuleFile[] = [];
  for (const file of folder.files.values()) {
    const hash = createHash('sha256');
    for await (const piece of createReadStream(join(directory, file.path))) hash.update(piece as Buffer);
    files.push({ ...file, sha256: hash.digest('hex') });
  }
  return files;
}

/**
 * Packs a folder as a gzip-compressed tar archive. Sorts the names, and omits times and owners, so that identical
 * folders produce identical archives.
 * @param packed called after each chunk of a file with the number of bytes packed so far
 */
export async function* packFolder(
  { directory, bytes, folder: { files } }: LocalFolder,
  packed: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const compressed = createGzip();
  const flowing = pipeline(archive, compressed);
  const writing = writeEntries(archive, directory, bytes, [...files.values()], packed).catch((error: Error) => {
    archive.destroy(error);
    throw error;
  });
  // Both are awaited below.
  flowing.catch(() => {});
  writing.catch(() => {});
  try {
    for await (const piece of compressed) yield piece as Uint8Array;
  } catch (error) {
    // If the writer failed, its error is the cause.
    await writing;
    throw error;
  }
  await writing;
}

const plain = { uid: 0, gid: 0, uname: '', gname: '', mtime: new Date(0) };

async function writeEntries(
  archive: Pack,
  directory: string,
  bytes: Uint8Array,
  files: readonly ModuleFile[],
  packed: (bytes: number) => void,
): Promise<void> {
  archive.entry({ ...plain, name: moduleFileName, mode: 0o644 }, Buffer.from(bytes));
  let done = 0;
  for (const { path, size, executable } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const header = { ...plain, name: path, size, mode: executable ? 0o755 : 0o644 };
    const source = createReadStream(join(directory, path));
    source.on('data', (piece) => {
      done += piece.length;
      packed(done);
    });
    await pipeline(source, archive.entry(header));
  }
  archive.finalize();
}

/**
 * Writes a module folder.
 * @param read returns the bytes of a file
 * @throws CliError if the folder is not empty or a path is unsafe
 */
export async function writeFolder(
  directory: string,
  content: string,
  files: readonly ModuleFile[],
  read: (path: string) => Promise<AsyncIterable<Uint8Array>>,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0)
    throw new CliError(exits.failed, 'file_exists', `${directory} is not empty`, 'Specify a new folder.');
  const write = async (path: string, mode: number, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) => {
    if (filePathFault(path) !== undefined) throw faulty(`the path ${JSON.stringify(path)} is unsafe`, 'Report this.');
    await mkdir(dirname(join(directory, path)), { recursive: true });
    const handle = await open(join(directory, path), 'wx', mode);
    try {
      for await (const piece of bytes) await handle.writeFile(piece);
    } finally {
      await handle.close();
    }
  };
  await write(moduleFileName, 0o644, [Buffer.from(content)]);
  for (const { path, executable } of files) await write(path, executable ? 0o755 : 0o644, await read(path));
}
