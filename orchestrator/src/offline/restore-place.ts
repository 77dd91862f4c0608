import { randomBytes } from 'node:crypto';
import { chown, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIfMissing } from '../../../lib/src/missing-file.ts';
import { readMountPoints } from '../../../lib/src/mount-points.ts';
import { writePrivateFile } from '../../../lib/src/private-file.ts';

/**
 * Restores a backup, or installs shared keys, into a data directory. Writes the new content to a folder in the
 * directory, followed by a marker file that states that the content is complete. The new content then replaces the
 * previous content; an interrupted replacement can be resumed. No orchestrator starts before the restore is finished.
 */

const folder = '.restoring';
/**
 * Marker file: the new content is complete and synced. Contains the name of the folder for the previous content; empty
 * if there is no previous content.
 */
const completeMarker = 'whole';
/** Marker file: the previous content has been moved aside. */
const cleared = 'cleared';
/**
 * Marker file: the external database has been or is about to be replaced, so the restore cannot be undone. Contains the
 * schema of the previous data.
 */
const database = 'database';

export interface Restoring {
  /** Path of the folder for the data directory's new content. */
  readonly content: string;
  /** Path of a folder for temporary files. */
  readonly scratch: string;
}

const staging = (dataDir: string) => join(dataDir, folder);

/** Reports whether a restore into the directory is in progress, or was interrupted. */
export const isRestoring = async (dataDir: string): Promise<boolean> =>
  (await lstat(staging(dataDir)).catch(() => null)) !== null;

/**
 * Returns the time and random part of the name for previous content. The random part distinguishes restores within the
 * same second.
 * @param now Unix milliseconds
 */
export const restoreStamp = (now: number): string =>
  `${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}-${randomBytes(2).toString('hex')}`;

/** Returns the names in a data directory, except those for locks and restores. */
export async function contentOf(dataDir: string): Promise<string[]> {
  const names = (await readdir(dataDir).catch(nullIfMissing)) ?? [];
  return names.filter(
    (name) => name !== folder && name !== 'lost+found' && !/^(orchestrator-lock\.|before-restore-)/.test(name),
  );
}

/** The content of an interrupted restore is incomplete, so that it cannot be finished. */
export class RestoreIncomplete extends Error {}

/** Content cannot be moved until the operator has removed an obstacle. */
export class RestoreBlocked extends Error {}

/**
 * Discards a restore whose content is incomplete, and creates an empty folder for a new one. The caller has locked the
 * directory, and finished a restore whose content is complete.
 * @throws RestoreBlocked if the previous content has a mount point, which cannot be moved aside
 */
export async function beginRestore(dataDir: string): Promise<Restoring> {
  await refuseMountPoints(dataDir);
  await dropRestore(dataDir);
  const content = join(staging(dataDir), 'content');
  await mkdir(content, { recursive: true, mode: 0o700 });
  // The service's user must be able to detect an incomplete restore.
  await giveTo(staging(dataDir), await ownerOf(dataDir));
  return { content, scratch: staging(dataDir) };
}

async function refuseMountPoints(dataDir: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const mountPoints = readMountPoints();
  const real = await realpath(dataDir);
  for (const name of await contentOf(dataDir))
    if (mountPoints.has(join(real, name)))
      throw new RestoreBlocked(
        `${join(dataDir, name)} is a mount point, so it cannot be moved aside; nothing was changed: unmount it, and try again`,
      );
}

/** Moves a file or folder. @throws RestoreBlocked if something is in the way; the error of the system if it denies the move */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    // The caller explains how to run the restore with more permissions.
    if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') throw error;
    const what = obstacles[code]?.(to) ?? `${message}: solve that`;
    throw new RestoreBlocked(
      `a restore cannot move ${from} to ${to} (${code}): ${what}, then start the orchestrator, which finishes the restore`,
    );
  }
}

/** Why a rename failed and what to do, by error code. The function receives the target of the rename. */
const obstacles: Readonly<Record<string, (to: string) => string>> = {
  EBUSY: () => 'one of them is a mount point: unmount it',
  EXDEV: () => 'one of them is a mount point: unmount it',
  ENOTEMPTY: (to) => `${to} exists: move it elsewhere`,
  ENOTDIR: (to) => `${to} exists: move it elsewhere`,
  EISDIR: (to) => `${to} exists: move it elsewhere`,
};

/**
 * Discards an unfinished restore, except the record of a committed database. Keeps a restore whose content is complete,
 * because the former content may already have been moved: the next start finishes it.
 */
export async function dropRestore(dataDir: string): Promise<void> {
  const there = await readdir(staging(dataDir)).catch(() => [] as string[]);
  if (there.includes(completeMarker) || there.includes(cleared)) return;
  for (const name of there)
    if (name !== database) await rm(join(staging(dataDir), name), { recursive: true, force: true });
  if (!there.includes(database)) await rm(staging(dataDir), { recursive: true, force: true });
}

/**
 * Records that an external database is about to be committed. No orchestrator starts until the directory is restored as
 * well.
 * @param aside schema of the previous data; null if the database was empty
 */
export async function markDatabase(dataDir: string, aside: string | null): Promise<void> {
  const path = join(staging(dataDir), database);
  const former = await readFile(path, 'utf8').catch(() => '');
  writePrivateFile(path, [former, aside ?? ''].filter((name) => name !== '').join(', '), 'replace');
  await giveTo(path, await ownerOf(dataDir));
}

/**
 * Marks the new content as complete and finishes the restore. If this is interrupted, the next startup finishes the
 * restore.
 * @param aside folder for the previous content; null if the directory was empty
 */
export async function completeRestore(dataDir: string, aside: string | null): Promise<void> {
  const prepared = join(staging(dataDir), 'prepared');
  writePrivateFile(prepared, aside ?? '', 'keep');
  const owner = await ownerOf(dataDir);
  await syncTree(staging(dataDir), owner);
  if (aside !== null) {
    await mkdir(join(dataDir, aside), { mode: 0o700 });
    await giveTo(join(dataDir, aside), owner);
  }
  await rename(prepared, join(staging(dataDir), completeMarker));
  await sync(staging(dataDir));
  await finishRestore(dataDir);
}

/**
 * Finishes an interrupted restore.
 * @returns false if no restore was interrupted
 * @throws RestoreIncomplete, RestoreBlocked, and errors of the file system, after which it can be finished later
 */
export async function finishRestore(dataDir: string): Promise<boolean> {
  const at = (name: string) => join(staging(dataDir), name);
  const there = await readdir(staging(dataDir)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
  if (there === null) return false;
  if (there.length === 0) {
    // The restore was finished, or nothing had been written.
    await rmdir(staging(dataDir));
    return false;
  }
  if (!there.includes(cleared)) {
    const former = there.includes(database) ? (await readFile(at(database), 'utf8')).trim() : null;
    if (!there.includes(completeMarker) && former !== null)
      throw new RestoreIncomplete(
        `a restore into ${dataDir} was interrupted after the database was restored and before the directory was: run \`muster restore\` again, with the same backup${former === '' ? '' : `; the former data is in schema ${former} of the database`}`,
      );
    if (!there.includes(completeMarker))
      throw new RestoreIncomplete(
        `a restore into ${dataDir} is in progress or was interrupted: run \`muster restore\` or \`muster orchestrator join\` again, or remove ${staging(dataDir)}`,
      );
    const aside = (await readFile(at(completeMarker), 'utf8')).trim();
    if (/^before-restore-[\w-]+$/.test(aside)) {
      await mkdir(join(dataDir, aside), { recursive: true, mode: 0o700 });
      for (const name of await contentOf(dataDir)) await move(join(dataDir, name), join(dataDir, aside, name));
      await sync(join(dataDir, aside));
    }
    await sync(dataDir);
    await rename(at(completeMarker), at(cleared));
    await sync(staging(dataDir));
  }
  // The content is missing if the restore was interrupted while its folder was removed.
  const contents = (await readdir(at('content')).catch(nullIfMissing)) ?? [];
  for (const name of contents) await move(join(at('content'), name), join(dataDir, name));
  await sync(dataDir);
  // Removes the marker last. Without it, the rest of the folder would look like a restore with incomplete content.
  for (const name of await readdir(staging(dataDir)))
    if (name !== cleared) await rm(at(name), { recursive: true, force: true });
  await sync(staging(dataDir));
  await rm(staging(dataDir), { recursive: true, force: true });
  await sync(dataDir);
  return true;
}

type Owner = { uid: number; gid: number } | null;

/** Returns the owner of the directory, for use as the owner of new files; null unless the current user is root. */
async function ownerOf(dataDir: string): Promise<Owner> {
  const { uid, gid } = await stat(dataDir);
  return process.getuid?.() === 0 ? { uid, gid } : null;
}

async function giveTo(path: string, owner: Owner): Promise<void> {
  if (owner) await chown(path, owner.uid, owner.gid);
}

/** Syncs all files below the path, and sets their owner. */
async function syncTree(path: string, owner: Owner): Promise<void> {
  await giveTo(path, owner);
  if ((await lstat(path)).isDirectory())
    for (const name of await readdir(path)) await syncTree(join(path, name), owner);
  await sync(path);
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
