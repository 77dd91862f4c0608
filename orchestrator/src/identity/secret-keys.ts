import { createSecretKey, hash, type KeyObject, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';

/** The keys that secrets are encrypted under. They are never in the database. */

const keyBytes = 32;
const ownFileName = 'secrets.keys';

/** A key for AES-256. The bytes are in a `KeyObject`, which no log prints. */
export interface SecretKey {
  /** The same for the same bytes, wherever they come from; says nothing about them. */
  readonly id: string;
  readonly key: KeyObject;
}

/** What is given as keys for secrets is none. The message names the place and never quotes it. */
class SecretKeysInvalid extends Error {}

/** The file in the data directory, which this program itself writes. */
interface OwnFile {
  write(keys: readonly Buffer[]): Promise<void>;
}

/**
 * The keys there are. The first encrypts; all of them decrypt. While a value is being encrypted and written, its key is
 * not retired.
 */
export class SecretKeys {
  #keys: readonly { key: SecretKey; bytes: Buffer | null }[];
  readonly #ownFile: OwnFile | null;
  readonly #writing = new Set<Promise<unknown>>();

  /**
   * @param given   bytes of the keys, the one to encrypt under first
   * @param ownFile null: the keys come from outside, and only their owner adds or removes one
   */
  constructor(given: readonly Buffer[], ownFile: OwnFile | null = null) {
    this.#ownFile = ownFile;
    this.#keys = given.map((bytes) => ({ key: keyOf(bytes), bytes: ownFile === null ? null : bytes }));
  }

  /** What new values are encrypted under; null: there is no key at all. */
  get active(): SecretKey | null {
    return this.#keys[0]?.key ?? null;
  }

  find(id: string): SecretKey | null {
    return this.#keys.find(({ key }) => key.id === id)?.key ?? null;
  }

  get ids(): string[] {
    return this.#keys.map(({ key }) => key.id);
  }

  /** Whether a new key can be made here. */
  get canAdd(): boolean {
    return this.#ownFile !== null;
  }

  /** A file of our own has one key, but while values are being put under the next. */
  get rotationCutOff(): boolean {
    return this.canAdd && this.#keys.length > 1;
  }

  /** Does what encrypts under the active key and writes the outcome; the key is kept until that has ended. */
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

  /** Waits for everything that began to encrypt before now. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** Makes a key, on disk before it is used. */
  async add(): Promise<void> {
    const bytes = randomBytes(keyBytes);
    await this.#store([{ key: keyOf(bytes), bytes }, ...this.#keys]);
  }

  /** Forgets keys, but never the active one. What is given from outside stays until its owner takes it away. */
  async retire(ids: readonly string[]): Promise<void> {
    if (this.#ownFile === null || ids.length === 0) return;
    await this.#store(this.#keys.filter(({ key }, index) => index === 0 || !ids.includes(key.id)));
  }

  async #store(keys: readonly { key: SecretKey; bytes: Buffer | null }[]): Promise<void> {
    if (this.#ownFile === null) throw new Error('these keys are not ours to change');
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
    '# The keys that Muster encrypts secrets under. The first encrypts, the others are for what is not encrypted anew yet.',
    '# Whoever has this file and the database has every secret; without it nobody has any. Keep a copy, apart from the database.',
    ...keys.map((bytes) => bytes.toString('hex')),
    '',
  ].join('\n');

/**
 * @param where for the message
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
          `${where}, line ${index + 1}: a key for secrets is ${keyBytes} bytes as 64 hexadecimal characters or in base64; make one with: openssl rand -hex ${keyBytes}`,
        );
      keys.push(bytes);
    }
  }
  if (keys.length === 0) throw new SecretKeysInvalid(`${where} holds no key for secrets`);
  return keys;
}

interface KeySources {
  dataDir: string;
  /** The configuration's `secrets_key_file`. */
  file: string | null;
  env: NodeJS.ProcessEnv;
  /** Whether the database holds secrets: then a missing key is not made up for by a new one. */
  holdsSecrets: () => Promise<boolean>;
}

/**
 * Reads the keys: the variable `MUSTER_SECRETS_KEY`, the systemd credential `muster-secrets-key`, the configured file, and
 * the file in the data directory, which is made when there is no key anywhere and no secret either. All that are there
 * count, the first of them encrypts.
 * @throws SecretKeysInvalid, LoosePermissionsError
 */
export async function loadSecretKeys({ dataDir, file, env, holdsSecrets }: KeySources): Promise<SecretKeys> {
  const outside: Buffer[] = [];
  const { MUSTER_SECRETS_KEY: variable, CREDENTIALS_DIRECTORY: credentials } = env;
  if (variable !== undefined && variable !== '')
    outside.push(...parseKeys(variable, 'the variable MUSTER_SECRETS_KEY'));
  if (credentials !== undefined) {
    const path = join(credentials, 'muster-secrets-key');
    // Its mode is systemd's affair, which may let a group at it by an access list.
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text !== null) outside.push(...parseKeys(text, `the credential ${path}`));
  }
  if (file !== null) {
    const text = readPrivateFile(file, 0o037);
    if (text === null) throw new SecretKeysInvalid(`there is no file ${file}, which secrets_key_file names`);
    outside.push(...parseKeys(text, file));
  }
  const path = join(dataDir, ownFileName);
  const text = readPrivateFile(path);
  const own = text === null ? [] : parseKeys(text, path);
  if (outside.length > 0) return new SecretKeys(distinct([...outside, ...own]));
  const ownFile: OwnFile = { write: async (keys) => writePrivateFile(path, ownFileText(keys), 'replace') };
  if (own.length > 0) return new SecretKeys(distinct(own), ownFile);
  if (await holdsSecrets()) return new SecretKeys([]);
  const made = randomBytes(keyBytes);
  writePrivateFile(path, ownFileText([made]), 'keep');
  return new SecretKeys([made], ownFile);
}

/** Ids of the keys that a file of ours holds. @throws SecretKeysInvalid */
export const keyIdsOf = (text: string): string[] =>
  distinct(parseKeys(text, ownFileName)).map((bytes) => keyOf(bytes).id);

const distinct = (keys: readonly Buffer[]): Buffer[] => [
  ...new Map(keys.map((bytes) => [bytes.toString('hex'), bytes])).values(),
];
