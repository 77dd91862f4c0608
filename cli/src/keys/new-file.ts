import { open, rename, rm } from 'node:fs/promises';
import { replaceablePath } from '../../../lib/src/output-file.ts';
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
  const target = await replaceablePath(path);
  if (target === null)
    throw usageError(`${path} exists and is not a regular file`, 'Specify a regular file, or - for standard output.');
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
