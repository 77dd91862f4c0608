import { createReadStream, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { DirectoryInUse, lockDirectory } from '../../../lib/src/instance-lock.ts';
import { createPrivateFile, ensurePrivateDirectory, writePrivateFile } from '../../../lib/src/private-file.ts';
import { version } from '../version.ts';
import type { OfflineCommand } from './command.ts';
import { decrypting, encrypting, isArmored, LockError, type Openers } from './encryption.ts';
import { lockOf, openerOptions, openersOf, type PassphraseUse } from './encryption-options.ts';
import {
  beginRestore,
  completeRestore,
  contentOf,
  dropRestore,
  finishRestore,
  isRestoring,
  RestoreIncomplete,
  restoreStamp,
} from './restore-place.ts';
import {
  filesOf,
  KeysRefused,
  maxSharedBytes,
  parseSharedKeys,
  planJoin,
  readKeyFiles,
  type SharedKeys,
  sharedKeysOf,
} from './shared-keys.ts';

/** The commands `muster orchestrator share` and `muster orchestrator join`. */

const passphraseUse: PassphraseUse = { what: 'the keys', variable: 'MUSTER_SHARE_PASSPHRASE' };

const share: OfflineCommand = {
  words: ['FILE'],
  options: { 'passphrase-file': { type: 'string' }, recipient: { type: 'string', multiple: true } },
  usage: `Usage: muster orchestrator share [options] FILE

Writes the keys that all replicas of a fleet must have to an encrypted file, or
to standard output for \`-\`: the identity key, the generated API certificate with
its key, and the secrets keys. "muster orchestrator join" installs them. The
orchestrator may keep running. FILE must not exist. Prompts for a passphrase
unless an option or MUSTER_SHARE_PASSPHRASE provides one.

Anyone who can decrypt the file can impersonate the orchestrator: delete it when
the other replicas have joined.

  --data-dir DIR             Data directory of the orchestrator
  --config FILE              Its configuration
  --passphrase-file FILE     File with the passphrase
  --recipient age1…          Encrypt for this age recipient; may be repeated
  --json                     Print the result as JSON

Examples:
  $ muster orchestrator share --data-dir /var/lib/muster-orchestrator keys.age
  $ muster orchestrator share --data-dir ./data --recipient age1… keys.age
`,
  run: async (config, dataDir, [named = ''], { given, env, tell, stdout, now }) => {
    const file = named === '-' ? null : named;
    if (file !== null && lstatSync(file, { throwIfNoEntry: false })) throw fileExists(file);
    const keys = await readKeys(dataDir, now());
    const lock = await lockOf(given, env, passphraseUse, true);
    if (lock === null)
      throw new LockError('cannot write the keys without encryption; specify --recipient or --passphrase-file');
    const plain = new Blob([JSON.stringify(keys)]).stream() as ReadableStream<Uint8Array>;
    const bytes = await collected((await encrypting(plain, lock)) as AsyncIterable<Uint8Array>);
    if (file === null)
      await new Promise<void>((resolve, reject) => stdout.write(bytes, (error) => (error ? reject(error) : resolve())));
    else createKeysFile(file, bytes);
    const names = filesOf(keys.files).map(([name]) => name);
    tell(`${file ?? 'standard output'}: ${names.join(', ')} of the orchestrator ${keys.public_key}, encrypted`);
    if (config.tls_cert !== null) tell('not included: the configured API certificate; configure it for each replica');
    if (keys.files['secrets.keys'] === undefined)
      tell(`not included: secrets keys, because ${dataDir} has none; configure the same keys for each replica`);
    tell('on the machine of the new replica, run: muster orchestrator join FILE');
    return { file, public_key: keys.public_key, files: names };
  },
};

const joinFleet: OfflineCommand = {
  words: ['FILE'],
  options: { ...openerOptions, force: { type: 'boolean' } },
  usage: `Usage: muster orchestrator join [options] FILE

Installs the keys that "muster orchestrator share" wrote into an empty data
directory, from a file, or from standard input for \`-\`. Either all keys are
installed, or none. Changes nothing if the directory already has these keys, and
refuses if it has others. Then set \`replica.name\` and the database in the
configuration, and start the orchestrator.

  --data-dir DIR             Data directory of the new replica
  --config FILE              Its configuration
  --force                    Move existing data aside and keep it
  --passphrase-file FILE     Passphrase; or MUSTER_SHARE_PASSPHRASE
  --identity FILE            File with the AGE-SECRET-KEY-1… that decrypts it
  --json                     Print the result as JSON

Examples:
  $ muster orchestrator join --data-dir /var/lib/muster-orchestrator keys.age
  $ muster orchestrator join --data-dir ./data --identity ./age.key keys.age
`,
  run: async (_config, dataDir, [file = ''], { given, env, stdin, tell, now }) => {
    const bytes = await collected(file === '-' ? stdin : createReadStream(file));
    const shared = await decrypted(bytes, openersOf(given, env, passphraseUse));
    const report = await install(shared, dataDir, { force: given.force === true, now: now() });
    const { installed, aside } = report;
    tell(
      installed.length === 0
        ? `${dataDir} already has these keys; nothing was changed`
        : `${dataDir}: installed ${installed.join(', ')}`,
    );
    if (aside !== null) tell(`former data: ${aside}`);
    tell(`orchestrator key: ${shared.public_key}`);
    if (installed.length > 0)
      tell('set replica.name and the database in the configuration, and start the orchestrator');
    return { public_key: shared.public_key, ...report };
  },
};

const fileExists = (file: string) =>
  new KeysRefused(`${file} exists: remove it, or choose another name; nothing was changed`);

function createKeysFile(file: string, bytes: Uint8Array): void {
  try {
    createPrivateFile(file, bytes);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? fileExists(file) : error;
  }
}

/**
 * Reads the keys of a data directory, and locks it unless the orchestrator runs, so that no restore or `join` replaces
 * some of them at the same time.
 * @throws KeysRefused
 */
async function readKeys(dataDir: string, now: number): Promise<SharedKeys> {
  const unlock = await lockDirectory(dataDir, 'orchestrator').catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    // A missing directory has no keys, and nothing changes in a read-only one.
    if (error instanceof DirectoryInUse || code === 'ENOENT' || code === 'EROFS') return () => {};
    throw error;
  });
  try {
    // The restore that holds the lock may end while the keys are read.
    await refuseRestoring(dataDir);
    const keys = sharedKeysOf(dataDir, { now, version });
    await refuseRestoring(dataDir);
    return keys;
  } finally {
    unlock();
  }
}

/** @throws KeysRefused */
async function refuseRestoring(dataDir: string): Promise<void> {
  if (await isRestoring(dataDir))
    throw new KeysRefused(
      `a restore into ${dataDir} is in progress or was interrupted: finish it, or start the orchestrator, and try again`,
    );
}

export const shareCommands: Readonly<Record<string, OfflineCommand>> = {
  'orchestrator share': share,
  'orchestrator join': joinFleet,
};

/** @throws LockError, KeysRefused */
async function decrypted(bytes: Uint8Array, openers: Openers): Promise<SharedKeys> {
  if (isArmored(bytes)) throw new KeysRefused('the file is armored: decode it with `age -d` or base64 first');
  const stream = Readable.toWeb(Readable.from([bytes])) as ReadableStream<Uint8Array>;
  let text: string;
  try {
    const plain = await collected((await decrypting(stream, openers)) as AsyncIterable<Uint8Array>);
    text = Buffer.from(plain).toString('utf8');
  } catch (error) {
    if (error instanceof LockError || error instanceof KeysRefused) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw error;
    throw new KeysRefused(`the file was not written by muster orchestrator share, or is damaged: ${message}`);
  }
  return parseSharedKeys(text);
}

/** @throws KeysRefused if there are more bytes than the file can have */
async function collected(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of bytes) {
    length += piece.length;
    if (length > maxSharedBytes)
      throw new KeysRefused('the file was not written by muster orchestrator share: too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/**
 * Installs the keys as a restore installs its files: a killed process leaves all of them or none, and the next start or
 * `join` completes or discards the rest.
 * @throws KeysRefused, DirectoryInUse
 */
async function install(
  shared: SharedKeys,
  dataDir: string,
  { force, now }: { force: boolean; now: number },
): Promise<{ installed: string[]; aside: string | null }> {
  ensurePrivateDirectory(dataDir);
  const unlock = await lockDirectory(dataDir, 'orchestrator');
  try {
    await finishRestore(dataDir).catch(async (error: unknown) => {
      if (!(error instanceof RestoreIncomplete)) throw error;
      await dropRestore(dataDir);
      // Refuses if an interrupted restore has replaced the database, because only `muster restore` can complete it.
      await finishRestore(dataDir);
    });
    const plan = planJoin(shared.files, {
      found: readKeyFiles(dataDir),
      content: await contentOf(dataDir),
      where: dataDir,
      force,
    });
    if (plan.action === 'nothing') return { installed: [], aside: null };
    const aside = plan.isOccupied ? `before-restore-${restoreStamp(now)}` : null;
    const files = filesOf(shared.files);
    const { content } = await beginRestore(dataDir);
    try {
      for (const [name, text] of files) writePrivateFile(join(content, name), text, 'keep');
      await completeRestore(dataDir, aside);
    } catch (error) {
      await dropRestore(dataDir).catch(() => undefined);
      throw error;
    }
    return { installed: files.map(([name]) => name), aside: aside === null ? null : join(dataDir, aside) };
  } finally {
    unlock();
  }
}
