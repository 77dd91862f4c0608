import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { link, rm, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makePrivateDirectory, writePrivateFile } from '../directories.ts';
import { CliError, exits } from '../exit.ts';
import { keyOf, type OperatorKey, publicHalf, publicKeyLabel } from './key.ts';
import { sealKey } from './sealed-key.ts';
import { type PublicKey, publicLine } from './ssh-key.ts';

interface PlaceOptions {
  /** Put an existing key aside under another name instead of refusing. */
  replace: boolean;
  /** Unix seconds: part of that name. */
  now: () => number;
}

/**
 * Makes a new key, mode 0600, in a directory that is made 0700 if it is missing.
 * @param options.passphrase null: the file alone opens everything
 * @throws CliError when there is one already
 * @returns the key, and where the former one is now
 */
export async function makeKey(
  path: string,
  options: PlaceOptions & { passphrase?: string | null },
): Promise<{ key: OperatorKey; former: string | null }> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const content = await contentOf(privateKey, options.passphrase ?? null);
  const former = await place(path, options, (fresh) => writePrivateFile(fresh, content));
  const kept = options.passphrase == null ? 'plain' : 'sealed';
  const signs = async (message: Uint8Array) => sign(null, message, privateKey);
  return { key: await keyOf(path, publicHalf(privateKey), kept, signs), former };
}

/** Uses a key of an ssh-agent from now on: only its public line is kept. @returns where the former key is now */
export async function usePublicLine(
  path: string,
  { key, comment }: { key: PublicKey; comment: string },
  options: PlaceOptions,
): Promise<string | null> {
  return await place(path, options, (fresh) => writePrivateFile(fresh, publicLine(key, comment)));
}

/** Uses a file that is kept elsewhere from now on, without a copy of it. @returns where the former key is now */
export async function useFile(path: string, target: string, options: PlaceOptions): Promise<string | null> {
  return await place(path, options, (fresh) => symlink(target, fresh));
}

/** Writes a key anew, under another passphrase or none: old or new, whatever happens. */
export async function resealKey(path: string, key: KeyObject, passphrase: string | null): Promise<void> {
  await writePrivateFile(path, await contentOf(key, passphrase));
}

async function contentOf(key: KeyObject, passphrase: string | null): Promise<string> {
  if (passphrase === null) return key.export({ format: 'pem', type: 'pkcs8' }).toString();
  return `${publicKeyLabel}${publicHalf(key).toString('hex')}\n${await sealKey(key, passphrase)}`;
}

/**
 * Puts a key where the program looks for it. It is made beside and linked into place: it is never there in part, and
 * never takes the place of another.
 */
async function place(
  path: string,
  { replace, now }: PlaceOptions,
  make: (fresh: string) => Promise<unknown>,
): Promise<string | null> {
  await makePrivateDirectory(dirname(path));
  const fresh = `${path}.new-${process.pid}`;
  await rm(fresh, { force: true });
  await make(fresh);
  let former: string | null = null;
  try {
    if (replace) former = await putAside(path, now());
    // The link itself, where it is one.
    await link(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new CliError(
      exits.failed,
      'key_exists',
      `there is an operator key at ${path} already`,
      'Use it: `muster operator whoami --public-key` prints its public half, as this would. Or make another with --force: the present one is kept under another name.',
    );
  } finally {
    await rm(fresh, { force: true });
  }
  return former;
}

async function putAside(path: string, now: number): Promise<string | null> {
  const aside = `${path}.${new Date(now * 1000).toISOString().replace(/[-:]|\.\d+/g, '')}`;
  try {
    await link(path, aside);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw error;
  }
  await rm(path);
  return aside;
}
