import { chown, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../../lib/src/private-file.ts';

/**
 * A data directory that is being put back. All of it is first made in a folder within it; a file there says that it is
 * whole, and from then on it takes the place of what was there, however often that is cut off. Nothing is started in between.
 */

const folder = '.restoring';
/** Whole and on disk; holds the name of the folder for what was there before, or nothing. */
const whole = 'whole';
/** What was there before is out of the way. */
const cleared = 'cleared';
/** A database elsewhere is, or is about to be, that of the backup: nothing goes back from there. Holds where the former one is. */
const database = 'database';

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
  await dropRestore(dataDir);
  const content = join(staging(dataDir), 'content');
  await mkdir(join(content, 'terminals'), { recursive: true, mode: 0o700 });
  // Whoever starts there is to see that it is not whole.
  await giveTo(staging(dataDir), await ownerOf(dataDir));
  return { content, scratch: staging(dataDir) };
}

/** Takes back what was begun; one whose database is there already stays begun. */
export async function dropRestore(dataDir: string): Promise<void> {
  const there = await readdir(staging(dataDir)).catch(() => [] as string[]);
  for (const name of there)
    if (name !== database) await rm(join(staging(dataDir), name), { recursive: true, force: true });
  if (!there.includes(database)) await rm(staging(dataDir), { recursive: true, force: true });
}

/**
 * Called before a database elsewhere is committed: until the directory is whole too, nobody starts on the two.
 * @param aside where what was in it is then; null: nothing was
 */
export async function goOnWithDatabase(dataDir: string, aside: string | null): Promise<void> {
  const path = join(staging(dataDir), database);
  const former = await readFile(path, 'utf8').catch(() => '');
  writePrivateFile(path, [former, aside ?? ''].filter((name) => name !== '').join(', '), 'replace');
  await giveTo(path, await ownerOf(dataDir));
}

/**
 * Says that everything is there: from here on it is brought to its end by whoever comes by.
 * @param aside where what is in the directory goes; null: there is nothing
 */
export async function completeRestore(dataDir: string, aside: string | null): Promise<void> {
  const prepared = join(staging(dataDir), 'prepared');
  writePrivateFile(prepared, aside ?? '', 'keep');
  const owner = await ownerOf(dataDir);
  await settleTree(staging(dataDir), owner);
  if (aside !== null) {
    await mkdir(join(dataDir, aside), { mode: 0o700 });
    await giveTo(join(dataDir, aside), owner);
  }
  await rename(prepared, join(staging(dataDir), whole));
  await sync(staging(dataDir));
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
    const former = there.includes(database) ? (await readFile(at(database), 'utf8')).trim() : null;
    if (!there.includes(whole) && former !== null)
      throw new Error(
        `a restore into ${dataDir} was cut off when its database was there and the directory was not: run \`muster restore\` again, with the same backup${former === '' ? '' : `; what was in the database is in its schema ${former}`}`,
      );
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

type Owner = { uid: number; gid: number } | null;

/** To whom what root makes here is to belong; null: to whoever makes it. */
async function ownerOf(dataDir: string): Promise<Owner> {
  const { uid, gid } = await stat(dataDir);
  return process.getuid?.() === 0 ? { uid, gid } : null;
}

async function giveTo(path: string, owner: Owner): Promise<void> {
  if (owner) await chown(path, owner.uid, owner.gid);
}

/** Puts everything below on disk, and gives it to whom the directory belongs. */
async function settleTree(path: string, owner: Owner): Promise<void> {
  await giveTo(path, owner);
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
