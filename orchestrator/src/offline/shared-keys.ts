import { createPrivateKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile } from '../../../lib/src/private-file.ts';
import { rawPublicKey } from '../identity/ed25519-key.ts';
import { keyIdsOf } from '../identity/secret-keys.ts';

/**
 * The keys that all replicas of a fleet have, as one JSON object. `muster orchestrator share` writes it, encrypted in the
 * age format, and `muster orchestrator join` installs it.
 */

const formatVersion = 1;
const keyFileNames = ['identity.key', 'api.key', 'api.crt', 'secrets.keys'] as const;
type KeyFileName = (typeof keyFileNames)[number];
/** Maximum length of a key file, in characters. A secrets key needs 65. */
const maxFileLength = 64 * 1024;
/** Maximum length of the encrypted and of the decrypted object, in bytes. */
export const maxSharedBytes = 1024 * 1024;

const fileText = z.string().min(1).max(maxFileLength);
const sharedKeysSchema = z.strictObject({
  muster_share: z.literal(formatVersion),
  created_at: z.string().max(100),
  muster_version: z.string().max(100),
  /** The orchestrator key, in hex. */
  public_key: z.string().regex(/^[0-9a-f]{64}$/),
  /** Contents by name in the data directory. */
  files: z.strictObject({
    'identity.key': fileText,
    'api.key': fileText.optional(),
    'api.crt': fileText.optional(),
    'secrets.keys': fileText.optional(),
  }),
});
export type SharedKeys = z.infer<typeof sharedKeysSchema>;
export type KeyFiles = SharedKeys['files'];

/** The keys cannot be shared or installed. The message is for operators, and quotes no key. */
export class KeysRefused extends Error {}

/** Reads the key files of a data directory. @throws LoosePermissionsError */
export function readKeyFiles(dataDir: string): Partial<KeyFiles> {
  const files: Partial<Record<KeyFileName, string>> = {};
  for (const name of keyFileNames) {
    const text = readPrivateFile(join(dataDir, name));
    if (text !== null) files[name] = text;
  }
  return files;
}

/**
 * Collects the keys of a data directory.
 * @throws KeysRefused if they are incomplete, LoosePermissionsError
 */
export function sharedKeysOf(dataDir: string, about: { now: number; version: string }): SharedKeys {
  const { 'identity.key': identity, ...others } = readKeyFiles(dataDir);
  if (identity === undefined)
    throw new KeysRefused(
      `${dataDir} is not the data directory of an orchestrator: it has no identity.key. Start the orchestrator once, or use --data-dir`,
    );
  const files = { 'identity.key': identity, ...others };
  const public_key = checkedPublicKey(files, dataDir);
  const created_at = new Date(about.now).toISOString();
  return { muster_share: formatVersion, created_at, muster_version: about.version, public_key, files };
}

/**
 * Parses decrypted keys. They may be hostile, because everyone who knows a recipient can encrypt for it.
 * @throws KeysRefused
 */
export function parseSharedKeys(text: string): SharedKeys {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new KeysRefused('this file was not written by muster orchestrator share');
  }
  const { muster_share: format } = (value ?? {}) as { muster_share?: unknown };
  if (typeof format === 'number' && format !== formatVersion)
    throw new KeysRefused(
      `the file has format ${format}, but this release reads format ${formatVersion}: use the release that wrote it`,
    );
  const { data, error } = sharedKeysSchema.safeParse(value);
  if (error) {
    const [issue] = error.issues;
    const place = issue?.path.length ? ` at ${issue.path.join('.')}` : '';
    throw new KeysRefused(`this file was not written by muster orchestrator share: it is invalid${place}`);
  }
  if (checkedPublicKey(data.files, 'the file') !== data.public_key)
    throw new KeysRefused('the file is damaged: its identity.key does not belong to its public_key');
  return data;
}

/** Returns the orchestrator key in hex. @throws KeysRefused if a key is invalid, or the certificate has another key */
function checkedPublicKey(files: KeyFiles, where: string): string {
  const invalid = (name: string) => new KeysRefused(`${name} in ${where} is invalid: restore the original file`);
  const checked = <T>(name: KeyFileName, read: () => T | null): T => {
    let value: T | null;
    try {
      value = read();
    } catch {
      // The original error could quote the key.
      throw invalid(name);
    }
    if (value === null) throw invalid(name);
    return value;
  };
  const publicKey = checked('identity.key', () => rawPublicKey(createPrivateKey(files['identity.key'])));
  const { 'api.key': key, 'api.crt': certificate, 'secrets.keys': secrets } = files;
  if ((key === undefined) !== (certificate === undefined))
    throw new KeysRefused(`${where} has only one of api.key and api.crt: start the orchestrator once to renew api.crt`);
  if (key !== undefined && certificate !== undefined)
    checked('api.crt', () => new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) || null);
  if (secrets !== undefined) checked('secrets.keys', () => keyIdsOf(secrets));
  return publicKey.toString('hex');
}

/** What `muster orchestrator join` does with a data directory. */
export type JoinPlan =
  | { readonly action: 'install'; readonly isOccupied: boolean }
  /** The directory already has these keys. */
  | { readonly action: 'nothing' };

/**
 * Decides how to install keys.
 * @param shared the keys to install
 * @param found the key files in the data directory
 * @param content the names in the data directory
 * @param where the data directory, for error messages
 * @throws KeysRefused if the directory has other content, unless `force` moves it aside
 */
export function planJoin(
  shared: KeyFiles,
  {
    found,
    content,
    where,
    force,
  }: { found: Partial<KeyFiles>; content: readonly string[]; where: string; force: boolean },
): JoinPlan {
  // Replicas renew the certificate, each for its own host, with the same key.
  const compared = keyFileNames.filter((name) => name !== 'api.crt');
  const differing = compared.filter((name) => shared[name] !== found[name]);
  if (differing.length === 0) return { action: 'nothing' };
  if (content.length === 0 || force) return { action: 'install', isOccupied: content.length > 0 };
  throw new KeysRefused(
    `${where} ${occupation(differing, { shared, found, content })}; nothing was changed: use an empty directory, or --force, which moves the existing data aside`,
  );
}

/** Describes how the keys in a directory differ from the shared ones; if it has none of them, what else it contains. */
function occupation(
  differing: readonly KeyFileName[],
  { shared, found, content }: { shared: KeyFiles; found: Partial<KeyFiles>; content: readonly string[] },
): string {
  const named = (verb: string, names: readonly KeyFileName[]) =>
    names.length === 0 ? [] : [`${verb} (${names.join(', ')})`];
  const inBoth = differing.filter((name) => shared[name] !== undefined && found[name] !== undefined);
  const onlyFound = differing.filter((name) => shared[name] === undefined);
  const onlyShared = differing.filter((name) => found[name] === undefined);
  const hasShared = keyFileNames.some((name) => shared[name] !== undefined && shared[name] === found[name]);
  const reasons = [
    ...named('has other keys', inBoth),
    ...named('has keys that the file lacks', onlyFound),
    ...(hasShared ? named('lacks keys of the file', onlyShared) : []),
  ];
  const shown = content.length > 3 ? [...content.slice(0, 3), '…'] : content;
  return reasons.length > 0 ? reasons.join(' and ') : `is not empty (${shown.join(', ')})`;
}

/** Returns the names of the files to install. */
export const filesOf = (files: KeyFiles): [string, string][] =>
  keyFileNames.flatMap((name) => {
    const text = files[name];
    return text === undefined ? [] : [[name, text]];
  });
