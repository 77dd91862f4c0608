import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { constants } from 'node:fs';
import { link, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { makePrivateDirectory, writePrivateFile } from './directories.ts';
import { CliError, exits } from './exit.ts';

/** An operator's key, ready to sign. */
export interface OperatorKey {
  readonly path: string;
  /** 64 lower-case hexadecimal characters. */
  readonly publicKey: string;
  readonly operatorId: string;
  /** @returns the 64 bytes of an Ed25519 signature */
  sign(message: Uint8Array): Uint8Array;
}

// PKCS#8 of an Ed25519 key is this, then the 32 bytes of the seed.
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex');

function unusable(path: string, why: string, remedy: string, cause?: unknown): CliError {
  return new CliError(exits.signIn, 'key_unusable', `the operator key ${path} ${why}`, remedy, { cause });
}

/**
 * Reads a key: PKCS#8 in PEM, as `muster operator init` and `openssl genpkey -algorithm ed25519` write it, or the seed
 * as 64 hexadecimal characters. A file that others may read or write is refused.
 * @throws CliError (sign-in) with what to do
 */
export async function readKey(path: string): Promise<OperatorKey> {
  const text = await readOwn(path);
  let key: KeyObject;
  try {
    key = /^\s*[0-9a-fA-F]{64}\s*$/.test(text)
      ? createPrivateKey({
          key: Buffer.concat([pkcs8Head, Buffer.from(text.trim(), 'hex')]),
          format: 'der',
          type: 'pkcs8',
        })
      : createPrivateKey(text);
  } catch (error) {
    const why = /BEGIN (ENCRYPTED|OPENSSH) PRIVATE KEY/.test(text)
      ? 'has a passphrase or is in OpenSSH’s own form, which is not understood'
      : 'holds no private key';
    throw unusable(path, why, 'It must be PKCS#8 in PEM, or 64 hexadecimal characters of seed.', error);
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw unusable(path, `is of the type ${key.asymmetricKeyType}`, 'It must be an Ed25519 key: muster operator init');
  return keyOf(path, key);
}

async function readOwn(path: string): Promise<string> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_RDONLY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      throw new CliError(
        exits.signIn,
        'key_missing',
        `there is no operator key at ${path}`,
        'Make one with `muster operator init`, or name another with --key-file.',
        { cause: error },
      );
    throw unusable(path, `cannot be read (${code ?? 'unknown reason'})`, 'Check its owner and mode.', error);
  }
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw unusable(path, 'is not a file', 'Name the file itself with --key-file.');
    if (stat.size > 65_536) throw unusable(path, 'is too large for a key', 'Name another with --key-file.');
    if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0)
      throw unusable(
        path,
        `may be used by others (mode ${(stat.mode & 0o777).toString(8).padStart(4, '0')})`,
        `Close it: chmod 600 ${path}. If others could read it, make a new one.`,
      );
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

async function keyOf(path: string, key: KeyObject): Promise<OperatorKey> {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  const publicKey = Buffer.from(x ?? '', 'base64url');
  return {
    path,
    publicKey: publicKey.toString('hex'),
    operatorId: await idOfKey(publicKey),
    sign: (message) => new Uint8Array(sign(null, message, key)),
  };
}

/**
 * Makes a new key, mode 0600, in a directory that is made 0700 if it is missing.
 * @param options.replace put an existing key aside under another name instead of refusing
 * @param options.now Unix seconds: part of that name
 * @throws CliError when there is one already
 * @returns the key, and where the former one is now
 */
export async function makeKey(
  path: string,
  options: { replace: boolean; now: () => number },
): Promise<{ key: OperatorKey; former: string | null }> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  await makePrivateDirectory(dirname(path));
  // Written beside and linked into place: it is never there in part, and never takes the place of another.
  const fresh = `${path}.new-${process.pid}`;
  await rm(fresh, { force: true });
  await writePrivateFile(fresh, pem);
  let former: string | null = null;
  try {
    if (options.replace) former = await putAside(path, options.now());
    await link(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new CliError(
      exits.failed,
      'key_exists',
      `there is an operator key at ${path} already`,
      'Use it (`muster operator whoami` shows it), or make another with --force: the present one is kept under another name.',
    );
  } finally {
    await rm(fresh, { force: true });
  }
  return { key: await keyOf(path, privateKey), former };
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
