import { createSecretKey, hash, type KeyObject, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIfMissing } from '../../../lib/src/missing-file.ts';
import { readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';

/** The secrets keys, which encrypt secrets. They are never stored in the database. */

const keyBytes = 32;
const ownFileName = 'secrets.keys';

/** An AES-256 key. Its bytes are in a `KeyObject`, so that logs cannot contain them. */
export interface SecretKey {
  /** Truncated hash, which reveals no part of the key. */
  readonly id: string;
  readonly key: KeyObject;
}

/** The secrets keys are invalid. The message names their source but never quotes their content. */
class SecretKeysInvalid extends Error {}

/** The key file in the data directory, which only the orchestrator writes. */
interface OwnFile {
  write(keys: readonly Buffer[]): Promise<void>;
}

/**
 * The available keys. The first key encrypts, and all keys decrypt. A key is not retired until values being encrypted
 * with it have been written.
 */
export class SecretKeys {
  #keys: readonly { key: SecretKey; bytes: Buffer | null }[];
  readonly #ownFile: OwnFile | null;
  readonly #writing = new Set<Promise<unknown>>();

  /**
   * @param given bytes of the keys, the active key first
   * @param ownFile null if the keys come from another source, where only an operator can change them
   */
  constructor(given: readonly Buffer[], ownFile: OwnFile | null = null) {
    this.#ownFile = ownFile;
    this.#keys = given.map((bytes) => ({ key: keyOf(bytes), bytes: ownFile === null ? null : bytes }));
  }

  /** The key that encrypts new values; null if there are no keys. */
  get active(): SecretKey | null {
    return this.#keys[0]?.key ?? null;
  }

  find(id: string): SecretKey | null {
    return this.#keys.find(({ key }) => key.id === id)?.key ?? null;
  }

  get ids(): string[] {
    return this.#keys.map(({ key }) => key.id);
  }

  /** Whether the orchestrator can create keys. */
  get canAdd(): boolean {
    return this.#ownFile !== null;
  }

  /** Whether an interrupted rotation has left more than one key in the orchestrator's key file. */
  get rotationCutOff(): boolean {
    return this.canAdd && this.#keys.length > 1;
  }

  /** Runs an action that encrypts a value with the active key and writes it. `settled` waits for the action. */
  async encrypting<T>(act: (key: SecretKey | null) => Promise<T>): Promise<T> {
    const done = act(this.active);
    const settled = done.then(
      () => {},
      () => {},
    );
    this.#writing.add(settled);
    try {
      return await done;
    } finally {
      this.#writing.delete(settled);
    }
  }

  /** Waits until no encryption is in progress. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** Creates a key, and stores it on disk before its first use. */
  async add(): Promise<void> {
    const bytes = randomBytes(keyBytes);
    await this.#store([{ key: keyOf(bytes), bytes }, ...this.#keys]);
  }

  /**
   * Removes the keys with these IDs, but never the active key. Keys from other sources remain until an operator removes
   * them.
   */
  async retire(ids: readonly string[]): Promise<void> {
    if (this.#ownFile === null || ids.length === 0) return;
    await this.#store(this.#keys.filter(({ key }, index) => index === 0 || !ids.includes(key.id)));
  }

  async #store(keys: readonly { key: SecretKey; bytes: Buffer | null }[]): Promise<void> {
    if (this.#ownFile === null) throw new Error('these keys are not managed by this orchestrator');
    await this.#ownFile.write(keys.map(({ bytes }) => bytes as Buffer));
    this.#keys = keys;
  }
}

function keyOf(bytes: Buffer): SecretKey {
  const id = hash('sha256', Buffer.concat([Buffer.from('muster secrets key\0'), bytes]), 'hex').slice(0, 16);
  return { id, key: createSecretKey(bytes) };
}

const ownFileText = (keys: readonly Buffer[]): string =>
  [
    '# Keys that encrypt Muster’s secrets. The first one encrypts; the others decrypt values that have not been re-encrypted yet.',
    '# This file and the database together reveal every secret; without this file, all secrets are lost. Keep a copy separate from the database.',
    ...keys.map((bytes) => bytes.toString('hex')),
    '',
  ].join('\n');

/**
 * @param where source of the keys, for error messages
 * @throws SecretKeysInvalid
 */
function parseKeys(text: string, where: string): Buffer[] {
  const keys: Buffer[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trimStart().startsWith('#')) continue;
    for (const word of line.split(/[\s,]+/).filter(Boolean)) {
      const bytes = /^[0-9a-fA-F]{64}$/.test(word)
        ? Buffer.from(word, 'hex')
        : /^[A-Za-z0-9+/_-]{43}=?$/.test(word)
          ? Buffer.from(word, 'base64')
          : null;
      if (bytes?.length !== keyBytes)
        throw new SecretKeysInvalid(
          `${where}, line ${index + 1}: a secrets key is ${keyBytes} bytes as 64 hexadecimal characters or in base64; create one with: openssl rand -hex ${keyBytes}`,
        );
      keys.push(bytes);
    }
  }
  if (keys.length === 0) throw new SecretKeysInvalid(`${where} has no secrets key`);
  return keys;
}

interface KeyPlaces {
  dataDir: string;
  /** Value of the setting `secrets_key_file`. */
  file: string | null;
  env: NodeJS.ProcessEnv;
}

interface KeySources extends KeyPlaces {
  /** Reports whether the database has secrets. If so, a missing key is not replaced by a new key. */
  hasSecrets: () => Promise<boolean>;
}

/**
 * Reads the keys from the variable `MUSTER_SECRETS_KEY`, the systemd credential `muster-secrets-key`, the configured
 * file, and the file in the data directory. The first key that is found encrypts, and all of them decrypt.
 * @returns null if there are none
 * @throws SecretKeysInvalid, LoosePermissionsError
 */
export async function readSecretKeys({ dataDir, file, env }: KeyPlaces): Promise<SecretKeys | null> {
  const outside: Buffer[] = [];
  const { MUSTER_SECRETS_KEY: variable, CREDENTIALS_DIRECTORY: credentials } = env;
  if (variable !== undefined && variable !== '')
    outside.push(...parseKeys(variable, 'the variable MUSTER_SECRETS_KEY'));
  if (credentials !== undefined) {
    const path = join(credentials, 'muster-secrets-key');
    // Does not check the mode, because systemd sets it, and ACLs can make it appear too permissive.
    const text = await readFile(path, 'utf8').catch(nullIfMissing);
    if (text !== null) outside.push(...parseKeys(text, `the credential ${path}`));
  }
  if (file !== null) {
    const text = readPrivateFile(file, 0o037);
    if (text === null) throw new SecretKeysInvalid(`secrets_key_file ${file} does not exist`);
    outside.push(...parseKeys(text, file));
  }
  const path = join(dataDir, ownFileName);
  const text = readPrivateFile(path);
  const own = text === null ? [] : parseKeys(text, path);
  if (outside.length > 0) return new SecretKeys(distinct([...outside, ...own]));
  return own.length > 0 ? new SecretKeys(distinct(own), ownFileAt(path)) : null;
}

/** Reads the keys, and creates one in the data directory if there are no keys and no secrets. */
export async function loadSecretKeys({ hasSecrets, ...places }: KeySources): Promise<SecretKeys> {
  const found = await readSecretKeys(places);
  if (found !== null) return found;
  if (await hasSecrets()) return new SecretKeys([]);
  const path = join(places.dataDir, ownFileName);
  const made = randomBytes(keyBytes);
  writePrivateFile(path, ownFileText([made]), 'keep');
  return new SecretKeys([made], ownFileAt(path));
}

const ownFileAt = (path: string): OwnFile => ({
  write: async (keys) => writePrivateFile(path, ownFileText(keys), 'replace'),
});

/** Returns the IDs of the keys in a key file's content. @throws SecretKeysInvalid */
export const keyIdsOf = (text: string): string[] =>
  distinct(parseKeys(text, ownFileName)).map((bytes) => keyOf(bytes).id);

const distinct = (keys: readonly Buffer[]): Buffer[] => [
  ...new Map(keys.map((bytes) => [bytes.toString('hex'), bytes])).values(),
];
