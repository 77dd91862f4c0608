import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** What only its owner may touch has looser permissions than that; starting would be unsafe. */
class LoosePermissionsError extends Error {
  constructor(path: string, mode: number, wanted: string) {
    super(
      `${path} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}, which lets others at the keys; run: chmod ${wanted} ${path}`,
    );
    this.name = 'LoosePermissionsError';
  }
}

/**
 * Makes the directory with mode 0700 where it is missing.
 * @throws LoosePermissionsError when it is there and group or others may do anything with it
 */
export async function ensurePrivateDirectory(path: string): Promise<void> {
  await makeDirectory(resolve(path));
  const { mode } = await stat(path);
  if ((mode & 0o077) !== 0) throw new LoosePermissionsError(path, mode, '0700');
}

/**
 * With those above it, step by step: Node's own way never comes back where the system says that a place is not there
 * although its parent is, as /proc does.
 */
async function makeDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (found?.isDirectory()) return;
  if (found) throw new Error(`${path} is not a directory`);
  if (dirname(path) !== path) await makeDirectory(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // Somebody else was making it.
    if (error.code !== 'EEXIST') throw error;
  });
}

/**
 * @param forbidden bits of the mode that must not be set
 * @returns null when there is no such file
 * @throws LoosePermissionsError when group or others may do with it what they must not: anything, unless said otherwise
 */
export async function readPrivateFile(path: string, forbidden = 0o077): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if ((mode & forbidden) !== 0) throw new LoosePermissionsError(path, mode, '0600');
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Writes a new file, 0600 and on disk when this resolves: whole or not at all, also after a power cut.
 * @throws Error with code EEXIST when there is one already
 */
export const createPrivateFile = (path: string, text: string): Promise<void> => writePrivateFile(path, text, link);

/** The same in place of what is there: old or new, never mixed. */
export const replacePrivateFile = (path: string, text: string): Promise<void> => writePrivateFile(path, text, rename);

async function writePrivateFile(
  path: string,
  text: string,
  put: (temporary: string, path: string) => Promise<void>,
): Promise<void> {
  const directory = dirname(path);
  const temporary = join(directory, `.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await put(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  const handle = await open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
