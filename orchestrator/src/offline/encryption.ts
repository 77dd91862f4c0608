import { openSync, readFileSync } from 'node:fs';
import { ReadStream, WriteStream } from 'node:tty';

/** Backups that only some can read: the age format (age-encryption.org), so that its own tools open them too. */

/** For whom one is written; null: for everybody who gets at the file. */
export type Lock = { readonly passphrase: string } | { readonly recipients: readonly string[] } | null;
/** What one is opened with. */
export interface Openers {
  readonly passphrase: (() => Promise<string>) | null;
  /** Text of a file of identities: `AGE-SECRET-KEY-1…`, one a line. */
  readonly identities: readonly string[];
}

/** What cannot be opened, or for nobody, in words for a person. */
export class LockError extends Error {}

const magic = 'age-encryption.org/v1\n';
const armored = '-----BEGIN AGE';
/** 128 MiB for a third of a second: what guesses cost too. */
const workFactor = 17;

const shortest = 10;

/** @throws LockError when it is one that is guessed in no time */
export function refuseWeak(passphrase: string): string {
  if (passphrase.length < shortest)
    throw new LockError(`a passphrase has at least ${shortest} characters: better some words than one`);
  return passphrase;
}

/** @throws LockError when a recipient is none */
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
          `${recipient.slice(0, 24)}… is no recipient of age: those begin with age1, and age-keygen prints them`,
        );
      }
  return encrypter.encrypt(bytes);
}

export const isEncrypted = (head: Uint8Array): boolean => Buffer.from(head).toString('latin1').startsWith(magic);
export const isArmored = (head: Uint8Array): boolean => Buffer.from(head).toString('latin1').startsWith(armored);
export const longestMagic = magic.length;

/** @throws LockError when nothing that was given opens it */
export async function decrypting(bytes: ReadableStream<Uint8Array>, openers: Openers) {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const identity of openers.identities) decrypter.addIdentity(identity);
  if (openers.identities.length === 0) {
    if (openers.passphrase === null)
      throw new LockError('it is encrypted: give --passphrase-file, --identity, or MUSTER_BACKUP_PASSPHRASE');
    decrypter.addPassphrase(await openers.passphrase());
  }
  try {
    return await decrypter.decrypt(bytes);
  } catch (error) {
    if (/no identity matched|incorrect HMAC|cannot decrypt/i.test((error as Error).message))
      throw new LockError('it cannot be opened with what was given: another passphrase or identity?');
    throw error;
  }
}

/** The first line of a file that nobody else may read is the caller's affair; here it is only read. */
export function passphraseOf(file: string): string {
  const [line = ''] = readFileSync(file, 'utf8').split(/\r?\n/);
  if (line === '') throw new LockError(`${file} holds no passphrase in its first line`);
  return line;
}

/** @throws LockError when there is none in the file */
export function identitiesOf(file: string): string[] {
  const found = readFileSync(file, 'utf8')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (found.length === 0 || !found.every((line) => /^AGE-SECRET-KEY-/.test(line)))
    throw new LockError(`${file} holds no identity of age: lines that begin with AGE-SECRET-KEY-`);
  return found;
}

/** Asks at the terminal, also when standard input and output are something else. Nothing of the answer is shown. */
export async function askPassphrase(question: string): Promise<string> {
  // Plain numbers, open to the end of the process: a FileHandle closes its own when it is collected, and by then the number
  // may be that of a file of the backup.
  let input: ReadStream;
  let output: WriteStream;
  try {
    input = new ReadStream(openSync('/dev/tty', 'r'));
    output = new WriteStream(openSync('/dev/tty', 'w'));
  } catch {
    throw new LockError(
      'there is no terminal to ask for a passphrase at: give --passphrase-file or MUSTER_BACKUP_PASSPHRASE',
    );
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
