import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { idOfKey } from '@muster/protocol';
import { ed25519Pkcs8 } from '../../../client/src/der.ts';
import { CliError, exits } from '../exit.ts';
import type { Passphrases } from './passphrase.ts';
import {
  isPrivateFile,
  keysOfAgent,
  openPrivateFile,
  type PublicKey,
  readPrivateHead,
  readPublicLine,
  signByAgent,
} from './ssh-key.ts';

/** An operator's key that can sign. */
export interface OperatorKey {
  readonly path: string;
  /** 64 lowercase hexadecimal characters. */
  readonly publicKey: string;
  readonly operatorId: string;
  /** How the private key is stored: unencrypted in the file, encrypted in the file, or only in ssh-agent. */
  readonly storage: 'plain' | 'sealed' | 'agent';
  /**
   * Signs a message. Asks for the passphrase on the first call if the key has one.
   * @returns the 64 bytes of an Ed25519 signature
   */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

export interface KeyOptions {
  /** Used only to sign. */
  passphrases: Passphrases;
  /** Value of SSH_AUTH_SOCK; undefined without ssh-agent. */
  agentSocket: string | undefined;
}

/**
 * Label of the line that precedes an encrypted key and contains the public key, so that reading the public key requires
 * no passphrase.
 */
export const publicKeyLabel = 'Public-Key: ';

function unusable(path: string, why: string, remedy: string, cause?: unknown): CliError {
  return new CliError(exits.signIn, 'key_unusable', `the operator key ${path} ${why}`, remedy, { cause });
}
const forms =
  'Use an Ed25519 key: PKCS#8 in PEM, an OpenSSH key, the public line of a key in ssh-agent, or a seed of 64 hexadecimal characters.';

/**
 * Reads a key in one of four forms: PKCS#8 in PEM, with or without a passphrase, as `muster operator init` and `openssl
 * genpkey -algorithm ed25519` write it; an OpenSSH private key; the public key line of a key in ssh-agent; or a seed of
 * 64 hexadecimal characters. Refuses a private key that other users can access.
 * @throws CliError (sign-in) with instructions
 */
export async function readKey(path: string, options: KeyOptions): Promise<OperatorKey> {
  const { text, mode } = readFileOfKey(path);
  const line = readPublicLine(text);
  if (line !== null)
    return await keyOf(path, line.key, 'agent', (message) => byAgent(path, line.key, message, options));
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    throw unusable(
      path,
      `is accessible to other users (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`,
      `Run chmod 600 ${path}. If others could read it, create a new key.`,
    );
  if (isPrivateFile(text)) return await readOpenSsh(path, text, options);
  if (text.includes('-----BEGIN ENCRYPTED PRIVATE KEY-----')) return await readSealed(path, text, options);
  const key = parsePrivate(path, text);
  return await keyOf(path, publicHalf(key), 'plain', async (message) => sign(null, message, key));
}

/**
 * Reads a key file.
 * @throws CliError (sign-in) if the file cannot contain a key
 */
function readFileOfKey(path: string): { text: string; mode: number } {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      throw new CliError(
        exits.signIn,
        'key_missing',
        `there is no operator key at ${path}`,
        'Create one with `muster operator init`, or name another with --key-file.',
        { cause: error },
      );
    throw unusable(path, `cannot be read (${code ?? 'unknown reason'})`, 'Check its owner and mode.', error);
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw unusable(path, 'is not a file', 'Specify the key file with --key-file.');
    if (stat.size > 65_536) throw unusable(path, 'is too large for a key', 'Specify another file with --key-file.');
    return { text: readFileSync(descriptor, 'utf8'), mode: stat.mode };
  } finally {
    closeSync(descriptor);
  }
}

function parsePrivate(path: string, text: string): KeyObject {
  let key: KeyObject;
  try {
    key = /^\s*[0-9a-fA-F]{64}\s*$/.test(text)
      ? createPrivateKey({
          key: Buffer.from(ed25519Pkcs8(Buffer.from(text.trim(), 'hex'))),
          format: 'der',
          type: 'pkcs8',
        })
      : createPrivateKey(text);
  } catch (error) {
    throw unusable(path, 'contains no private key', forms, error);
  }
  return ed25519Of(path, key);
}

function ed25519Of(path: string, key: KeyObject): KeyObject {
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw unusable(path, `has the type ${key.asymmetricKeyType}`, 'It must be an Ed25519 key: muster operator init');
}

async function readSealed(path: string, text: string, { passphrases }: KeyOptions): Promise<OperatorKey> {
  let opened: KeyObject | null = null;
  const unlock = async (): Promise<KeyObject> => {
    opened ??= await openSealed(path, text, passphrases);
    return opened;
  };
  const label = new RegExp(`^${publicKeyLabel}([0-9a-f]{64})\\s*$`, 'm').exec(text)?.[1];
  // Keys that `openssl` created lack this line.
  const said = label === undefined ? publicHalf(await unlock()) : Buffer.from(label, 'hex');
  return await keyOf(path, said, 'sealed', async (message) => {
    const key = await unlock();
    if (!publicHalf(key).equals(said))
      throw unusable(path, 'does not match its public key', `Fix its line ${publicKeyLabel.trim()} or remove it.`);
    return sign(null, message, key);
  });
}

/**
 * Decrypts a PKCS#8 key. On a terminal, asks again after a wrong passphrase.
 * @throws CliError (sign-in)
 */
async function openSealed(path: string, text: string, passphrases: Passphrases): Promise<KeyObject> {
  return await passphrases.open(path, async (passphrase) => {
    try {
      return ed25519Of(path, createPrivateKey({ key: text, passphrase }));
    } catch (error) {
      if (error instanceof CliError) throw error;
      return null;
    }
  });
}

async function readOpenSsh(path: string, text: string, options: KeyOptions): Promise<OperatorKey> {
  const head = readPrivateHead(text);
  if (head === null) throw unusable(path, 'is damaged, or not an Ed25519 key', forms);
  let signs: Awaited<ReturnType<typeof openPrivateFile>> = null;
  const unlock = async (): Promise<NonNullable<typeof signs>> => {
    const open = (passphrase: string | null) =>
      openPrivateFile(text, passphrase).catch((error: unknown) => {
        throw unusable(path, 'cannot be opened', (error as Error).message, error);
      });
    signs ??= head.sealed ? await options.passphrases.open(path, open) : await open(null);
    if (signs === null) throw unusable(path, 'cannot be opened', forms);
    return signs;
  };
  return await keyOf(path, head.key, head.sealed ? 'sealed' : 'plain', async (message) => {
    // Like ssh, does not ask for a passphrase if ssh-agent has the key.
    if (head.sealed && signs === null && (await isInAgent(head.key, options)))
      return await byAgent(path, head.key, message, options);
    return (await unlock())(message);
  });
}

async function isInAgent(key: PublicKey, { agentSocket }: KeyOptions): Promise<boolean> {
  if (!agentSocket) return false;
  const agentKeys = await keysOfAgent(agentSocket).catch(() => []);
  return agentKeys.some((each) => each.key.equals(key));
}

async function byAgent(path: string, key: PublicKey, message: Uint8Array, { agentSocket }: KeyOptions) {
  const failed = (why: string, remedy: string, cause?: unknown) =>
    new CliError(exits.signIn, 'ssh_agent_failed', `the operator key ${path} is in ssh-agent, ${why}`, remedy, {
      cause,
    });
  if (!agentSocket)
    throw failed('which is not running', 'Start one (`eval "$(ssh-agent)"`) and add the key with ssh-add.');
  const agentKeys = await keysOfAgent(agentSocket).catch((error: unknown) => {
    throw failed(`which does not answer at ${agentSocket}`, 'Check SSH_AUTH_SOCK.', error);
  });
  if (!agentKeys.some((each) => each.key.equals(key)))
    throw failed('which does not have it', 'Add it with ssh-add; `ssh-add -L` lists the keys.');
  return await signByAgent(agentSocket, key, message).catch((error: unknown) => {
    throw failed('which refused to sign', 'The agent may be locked, or wait for a touch or a confirmation.', error);
  });
}

export function publicHalf(key: KeyObject): PublicKey {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
}

export async function keyOf(
  path: string,
  publicKey: PublicKey,
  storage: OperatorKey['storage'],
  signs: (message: Uint8Array) => Promise<Uint8Array>,
): Promise<OperatorKey> {
  return {
    path,
    storage,
    publicKey: publicKey.toString('hex'),
    operatorId: await idOfKey(publicKey),
    sign: async (message) => new Uint8Array(await signs(message)),
  };
}

/**
 * Reads the private key from a file in one of Muster's own formats, which the caller will rewrite.
 * @throws CliError if the file has no private key or has another format
 */
export async function readPrivate(path: string, options: KeyOptions): Promise<KeyObject> {
  const { text } = readFileOfKey(path);
  if (readPublicLine(text) !== null || isPrivateFile(text))
    throw new CliError(
      exits.failed,
      'key_of_ssh',
      `${path} is an OpenSSH key`,
      'Change its passphrase with `ssh-keygen -p`.',
    );
  return text.includes('-----BEGIN ENCRYPTED PRIVATE KEY-----')
    ? await openSealed(path, text, options.passphrases)
    : parsePrivate(path, text);
}
