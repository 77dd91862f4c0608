import { lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { CliError, exits, usageError } from '../exit.ts';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such directory',
  ENOTDIR: 'part of the path is not a directory',
  EACCES: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left',
};

/**
 * Writes a file with mode 0600, completely or not at all. Replaces an existing file as the last step.
 * @returns the size in bytes
 */
export async function writeNewFile(path: string, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  const target = await replaceable(path);
  const partial = `${target}.${process.pid}.part`;
  const unwritable = (error: NodeJS.ErrnoException): never => {
    const why = reasons[error.code ?? ''] ?? error.message;
    throw new CliError(exits.failed, 'file_unwritable', `cannot write ${path}: ${why}`, null, { cause: error });
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
 * Refuses everything except regular files, because root would otherwise replace a device such as /dev/null.
 * @returns the path with symbolic links resolved
 */
async function replaceable(path: string): Promise<string> {
  const there = await lstat(path).catch(ifMissing);
  if (there === null) return path;
  // Null for a dangling link and for a link to an anonymous pipe.
  const target = await realpath(path).catch(ifMissing);
  if (target !== null && (await lstat(target)).isFile()) return target;
  throw usageError(`${path} exists and is not a regular file`, 'Specify a regular file, or - for standard output.');
}

function ifMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
