import { chown, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createPrivateFile } from '../identity/private-file.ts';

/**
 * A data directory that is being put back. All of it is first made in a folder within it; a file there says that it is
 * whole, and from then on it takes the place of what was there, however often that is cut off. Nothing is started in between.
 */

const folder = '.restoring';
/** Whole and on disk; holds the name of the folder for what was there before, or nothing. */
const whole = 'whole';
/** What was there before is out of the way. */
const cleared = 'cleared';

export interface Restoring {
  /** Becomes the content of the data directory. */
  readonly content: string;
  /** For what is needed until then. */
  readonly scratch: string;
}

const staging = (dataDir: string) => join(dataDir, folder);

/** What a data directory holds, apart from what this program needs to look after it. */
export async function contentOf(dataDir: string): Promise<string[]> {
  const names = await readdir(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter(
    (name) => name !== folder && name !== 'lost+found' && !/^(orchestrator-lock\.|before-restore-)/.test(name),
  );
}

/** Makes an empty place, in place of one that was begun. The caller holds the directory. */
export async function beginRestore(dataDir: string): Promise<Restoring> {
  await rm(staging(dataDir), { recursive: true, force: true });
  const content = join(staging(dataDir), 'content');
  await mkdir(join(content, 'terminals'), { recursive: true, mode: 0o700 });
  return { content, scratch: staging(dataDir) };
}

export const dropRestore = (dataDir: string): Promise<void> => rm(staging(dataDir), { recursive: true, force: true });

/**
 * Says that everything is there: from here on it is brought to its end by whoever comes by.
 * @param aside where what is in the directory goes; null: there is nothing
 */
export async function completeRestore(dataDir: string, aside: string | null): Promise<void> {
  const { uid, gid } = await stat(dataDir);
  await settleTree(join(staging(dataDir), 'content'), process.getuid?.() === 0 ? { uid, gid } : null);
  await createPrivateFile(join(staging(dataDir), whole), aside ?? '');
  await finishRestore(dataDir);
}

/**
 * Brings to its end what was cut off.
 * @returns false when there is nothing
 * @throws Error when what is there is not whole
 */
export async function finishRestore(dataDir: string): Promise<boolean> {
  const at = (name: string) => join(staging(dataDir), name);
  const there = await readdir(staging(dataDir)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
  if (there === null) return false;
  if (!there.includes(cleared)) {
    if (!there.includes(whole))
      throw new Error(
        `a restore into ${dataDir} is under way, or was cut off before it was whole: run \`muster restore\` again, or remove ${staging(dataDir)}`,
      );
    const aside = (await readFile(at(whole), 'utf8')).trim();
    if (/^before-restore-[\w-]+$/.test(aside)) {
      await mkdir(join(dataDir, aside), { recursive: true, mode: 0o700 });
      for (const name of await contentOf(dataDir)) await rename(join(dataDir, name), join(dataDir, aside, name));
      await sync(join(dataDir, aside));
    }
    await sync(dataDir);
    await rename(at(whole), at(cleared));
    await sync(staging(dataDir));
  }
  for (const name of await readdir(at('content'))) await rename(join(at('content'), name), join(dataDir, name));
  await sync(dataDir);
  await rm(staging(dataDir), { recursive: true, force: true });
  await sync(dataDir);
  return true;
}

/** Puts everything below on disk, and gives it to whom the directory belongs. */
async function settleTree(path: string, owner: { uid: number; gid: number } | null): Promise<void> {
  if (owner) await chown(path, owner.uid, owner.gid);
  if ((await lstat(path)).isDirectory())
    for (const name of await readdir(path)) await settleTree(join(path, name), owner);
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
