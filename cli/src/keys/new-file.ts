import { lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { CliError, exits, usageError } from '../exit.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such directory',
  ENOTDIR: 'a part of that path is no directory',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left',
};

/**
 * Writes a file that only its owner may read, whole or not at all: what was there before stays until the new one is done.
 * @returns its size
 */
export async function writeNewFile(path: string, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  const target = await replaceable(path);
  const partial = `${target}.${process.pid}.part`;
  const unwritable = (error: NodeJS.ErrnoException): never => {
    const why = reasons[error.code ?? ''] ?? error.message;
    throw new CliError(exits.failed, 'file_unwritable', `${path} cannot be written: ${why}`, null, { cause: error });
  };
  const file = await open(partial, 'wx', 0o600).catch(unwritable);
  let size = 0;
  try {
    for await (const piece of pieces) {
      await file.writeFile(piece).catch(unwritable);
      size += piece.length;
    }
    await file.sync();
    await file.close();
    await rename(partial, target);
    return size;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(partial, { force: true });
    throw error;
  }
}

/**
 * Whoever is root would replace a device that way, and a machine without `/dev/null` is hardly one.
 * @returns the path, links followed
 */
async function replaceable(path: string): Promise<string> {
  const there = await lstat(path).catch(ifMissing);
  if (there === null) return path;
  // A link that leads nowhere, or to a pipe that has no name.
  const target = await realpath(path).catch(ifMissing);
  if (target !== null && (await lstat(target)).isFile()) return target;
  throw usageError(`${path} is there and is no file that could be replaced`, 'Name a file; - is standard output.');
}

function ifMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
