import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { link, rm, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makePrivateDirectory, writePrivateFile } from '../directories.ts';
import { CliError, exits } from '../exit.ts';
import { keyOf, type OperatorKey, publicHalf, publicKeyLabel } from './key.ts';
import { sealKey } from './sealed-key.ts';
import { type PublicKey, publicLine } from './ssh-key.ts';

interface KeyFileOptions {
  /** Whether to rename an existing key instead of failing. */
  replace: boolean;
  /** Unix seconds, which become part of the previous key's new file name. */
  now: () => number;
}

/**
 * Creates a key file with mode 0600, and its directory with mode 0700.
 * @param options.passphrase null to store the key unencrypted
 * @returns the key, and the new path of the previous one
 * @throws CliError if a key exists
 */
export async function makeKey(
  path: string,
  options: KeyFileOptions & { passphrase?: string | null },
): Promise<{ key: OperatorKey; former: string | null }> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const content = await contentOf(privateKey, options.passphrase ?? null);
  const former = await installKeyFile(path, options, (fresh) => writePrivateFile(fresh, content));
  const storage = options.passphrase == null ? 'plain' : 'sealed';
  const signs = async (message: Uint8Array) => sign(null, message, privateKey);
  return { key: await keyOf(path, publicHalf(privateKey), storage, signs), former };
}

/**
 * Creates a key file that contains only the public key line of a key in ssh-agent.
 * @returns the new path of the previous key; null if there was none
 */
export async function usePublicLine(
  path: string,
  { key, comment }: { key: PublicKey; comment: string },
  options: KeyFileOptions,
): Promise<string | null> {
  return await installKeyFile(path, options, (fresh) => writePrivateFile(fresh, publicLine(key, comment)));
}

/**
 * Stores a symbolic link to an existing key file.
 * @returns the new path of the previous key; null if there was none
 */
export async function useFile(path: string, target: string, options: KeyFileOptions): Promise<string | null> {
  return await installKeyFile(path, options, (fresh) => symlink(target, fresh));
}

/** Atomically replaces a key file with one that has a different passphrase or none. */
export async function resealKey(path: string, key: KeyObject, passphrase: string | null): Promise<void> {
  await writePrivateFile(path, await contentOf(key, passphrase));
}

async function contentOf(key: KeyObject, passphrase: string | null): Promise<string> {
  if (passphrase === null) return key.export({ format: 'pem', type: 'pkcs8' }).toString();
  return `${publicKeyLabel}${publicHalf(key).toString('hex')}\n${await sealKey(key, passphrase)}`;
}

/**
 * Creates the final path as a hard link to a complete file, so that no half-written key appears and no key is
 * overwritten.
 */
async function installKeyFile(
  path: string,
  { replace, now }: KeyFileOptions,
  make: (fresh: string) => Promise<unknown>,
): Promise<string | null> {
  await makePrivateDirectory(dirname(path));
  const fresh = `${path}.new-${process.pid}`;
  await rm(fresh, { force: true });
  await make(fresh);
  let former: string | null = null;
  try {
    if (replace) former = await backUp(path, now());
    // If `fresh` is a symbolic link, this creates a hard link to the link itself, not to its target.
    await link(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new CliError(
      exits.failed,
      'key_exists',
      `an operator key already exists at ${path}`,
      'To use it: `muster operator whoami --public-key` prints its public key. To create another one and rename the existing one: --force',
    );
  } finally {
    await rm(fresh, { force: true });
  }
  return former;
}

async function backUp(path: string, now: number): Promise<string | null> {
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
