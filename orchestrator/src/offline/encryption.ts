import { openSync, readFileSync, statSync } from 'node:fs';
import { ReadStream, WriteStream } from 'node:tty';
import { readPrivateFile } from '../../../lib/src/private-file.ts';

/** Encrypts backups and shared keys in the age format (age-encryption.org), which every age tool can decrypt. */

/** How to encrypt a file; null for no encryption. */
export type Lock = { readonly passphrase: string } | { readonly recipients: readonly string[] } | null;
/** Passphrase and identities to try when decrypting a backup. */
export interface Openers {
  readonly passphrase: (() => Promise<string>) | null;
  /** age identities, such as `AGE-SECRET-KEY-1…`. */
  readonly identities: readonly string[];
}

/** The file cannot be encrypted or decrypted. The message is for operators. */
export class LockError extends Error {}

const magic = 'age-encryption.org/v1\n';
const armored = '-----BEGIN AGE';
/** log2 of scrypt's N. Each passphrase attempt, including an attacker's, costs 128 MiB and about 0.3 s. */
const workFactor = 17;

const minPassphraseLength = 10;

/** @throws LockError if the passphrase is too short */
export function refuseWeak(passphrase: string): string {
  if (passphrase.length < minPassphraseLength)
    throw new LockError(`a passphrase must have at least ${minPassphraseLength} characters: use several words`);
  return passphrase;
}

/** @throws LockError if a recipient is invalid */
export async function encrypting(bytes: ReadableStream<Uint8Array>, lock: Exclude<Lock, null>) {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  if ('passphrase' in lock) {
    encrypter.setScryptWorkFactor(workFactor);
    encrypter.setPassphrase(lock.passphrase);
  } else
    for (const recipient of lock.recipients)
      try {
        encrypter.addRecipient(recipient);
      } catch {
        throw new LockError(
          `${recipient.slice(0, 24)}… is not an age recipient; recipients start with age1, and age-keygen prints them`,
        );
      }
  return encrypter.encrypt(bytes);
}

export const isEncrypted = (head: Uint8Array): boolean => Buffer.from(head).toString('latin1').startsWith(magic);
export const isArmored = (head: Uint8Array): boolean => Buffer.from(head).toString('latin1').startsWith(armored);
export const maxMagicLength = magic.length;

/** @throws LockError if neither the passphrase nor an identity decrypts the file */
export async function decrypting(bytes: ReadableStream<Uint8Array>, openers: Openers) {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const identity of openers.identities) decrypter.addIdentity(identity);
  if (openers.identities.length === 0) {
    if (openers.passphrase === null) throw new LockError('the file is encrypted: use --passphrase-file or --identity');
    decrypter.addPassphrase(await openers.passphrase());
  }
  try {
    return await decrypter.decrypt(bytes);
  } catch (error) {
    if (/no identity matched|incorrect HMAC|cannot decrypt/i.test((error as Error).message))
      throw new LockError('the file cannot be decrypted: wrong passphrase or identity');
    throw error;
  }
}

/**
 * Reads a file that contains a passphrase or an age identity. Its group may read it, as with `secrets_key_file`.
 * @throws LoosePermissionsError if others may read it
 */
function secretOf(file: string): string {
  // The permissions of a pipe or a terminal do not say who can read its data.
  return statSync(file).isFile() ? (readPrivateFile(file, 0o037) ?? '') : readFileSync(file, 'utf8');
}

/**
 * @returns the first line of the file
 * @throws LockError, LoosePermissionsError
 */
export function passphraseOf(file: string): string {
  const [line = ''] = secretOf(file).split(/\r?\n/);
  if (line === '') throw new LockError(`${file} has an empty first line, which must contain the passphrase`);
  return line;
}

/** @throws LockError if the file contains no identity, LoosePermissionsError */
export function identitiesOf(file: string): string[] {
  const found = secretOf(file)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (found.length === 0 || !found.every((line) => /^AGE-SECRET-KEY-/.test(line)))
    throw new LockError(`${file} contains no age identity, which is a line that starts with AGE-SECRET-KEY-`);
  return found;
}

/**
 * Prompts at the terminal without echo, even if standard input and output are redirected.
 * @param variable the environment variable that can contain the passphrase, for the error without a terminal
 */
export async function askPassphrase(question: string, variable: string): Promise<string> {
  // Uses numeric descriptors. A FileHandle closes its descriptor when it is garbage-collected, after which the number
  // may refer to a file that belongs to the backup.
  let input: ReadStream;
  let output: WriteStream;
  try {
    input = new ReadStream(openSync('/dev/tty', 'r'));
    output = new WriteStream(openSync('/dev/tty', 'w'));
  } catch {
    throw new LockError(`there is no terminal to prompt for a passphrase: use --passphrase-file or ${variable}`);
  }
  try {
    output.write(question);
    input.setRawMode(true);
    let answer = '';
    for await (const piece of input)
      for (const character of String(piece)) {
        if (character === '\r' || character === '\n') return answer;
        if (character === '\u0003' || character === '\u0004') throw new LockError('cancelled; nothing was written');
        answer = character === '\u007f' ? answer.slice(0, -1) : answer + character;
      }
    return answer;
  } finally {
    if (!input.destroyed) input.setRawMode(false);
    output.write('\n');
    input.destroy();
  }
}
