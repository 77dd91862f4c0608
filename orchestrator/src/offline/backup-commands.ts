import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../config/faults.ts';
import { TransferRefused } from '../store/transfer/transfer-table.ts';
import type { BackupPart } from './backup-format.ts';
import { verifyBackup } from './backup-read.ts';
import { backupTarget, keepNewest, numberToKeep } from './backup-series.ts';
import { writeBackup } from './backup-write.ts';
import type { Given, OfflineCommand } from './command.ts';
import { counted, sized } from './counted.ts';
import type { Openers } from './encryption.ts';
import { list, lockOf, openerOptions, openersOf, type PassphraseUse, text } from './encryption-options.ts';
import { replaceable } from './replaceable.ts';
import { restoreBackup } from './restore.ts';

/** The commands `muster backup`, `muster backup verify`, and `muster restore`. */

const locationOptions = `  --data-dir DIR             Data directory of the orchestrator
  --config FILE              Its configuration, which the backup contains
  --database-url-file FILE   File with the URL of a PostgreSQL database
  --json                     Print the result as JSON
`;

const passphraseUse: PassphraseUse = { what: 'the backup', variable: 'MUSTER_BACKUP_PASSPHRASE' };

function withoutOf(given: Given): BackupPart[] {
  return list(given.without).map((part) => {
    if (part === 'metrics' || part === 'transcripts') return part;
    throw new ConfigError(`--without must be metrics or transcripts, not ${part}`);
  });
}

const backup: OfflineCommand = {
  words: ['FILE'],
  options: {
    ...openerOptions,
    encrypt: { type: 'boolean' },
    recipient: { type: 'string', multiple: true },
    without: { type: 'string', multiple: true },
    keep: { type: 'string' },
  },
  usage: `Usage: muster backup [options] FILE
       muster backup verify [options] FILE

Backs up a whole orchestrator to a file, or to standard output for \`-\`: the
database, its identity, secrets keys, certificates, the configuration file,
terminal transcripts, and metrics, all as of one moment. The orchestrator may
keep running. Sign-in sessions are not included. If FILE is a directory, the
backup is named after the current time.

The file is verified before it gets its final name. Anyone who can read an
unencrypted backup has every secret and can impersonate the orchestrator:
encrypt backups that leave the machine.

${locationOptions}  --encrypt                  Ask for a passphrase
  --passphrase-file FILE     Passphrase; or MUSTER_BACKUP_PASSPHRASE
  --recipient age1…          Encrypt for this age recipient; may be repeated
  --identity FILE            To verify: file with the age identity
  --without PART             Leave out metrics or transcripts; may be repeated
  --keep N                   In a directory: keep only the newest N backups

Examples:
  $ muster backup --data-dir /var/lib/muster-orchestrator muster.backup
  $ muster backup --data-dir ./data --recipient age1… - > muster.backup
  $ muster backup verify --passphrase-file ./passphrase muster.backup
`,
  run: async (config, dataDir, [named = ''], terminal) => {
    const { given, env, tell } = terminal;
    const keep = numberToKeep(text(given.keep));
    const target = await backupTarget(named, terminal.now());
    const { series } = target;
    const file = target.file === '-' ? '-' : await replaceable(target.file);
    if (keep !== null && series === null) throw new ConfigError('--keep requires an existing directory of backups');
    const lock = await lockOf(given, env, passphraseUse, given.encrypt === true);
    const without = withoutOf(given);
    const options = { config, dataDir, configFile: terminal.configFile, without, lock, now: terminal.now, tell };
    if (file === '-') {
      const report = await writeBackup(options, (bytes) => written(terminal.stdout, bytes));
      tell('backup written to standard output; verify it with: muster backup verify FILE');
      return { file: null, ...report, verified: false, removed: [] };
    }
    const openers: Openers | null =
      lock === null || 'passphrase' in lock
        ? { passphrase: lock === null ? null : async () => lock.passphrase, identities: [] }
        : null;
    const report = await writeVerified(
      file,
      (write) => writeBackup(options, write),
      async (partial) => {
        if (openers) await verifyBackup(createReadStream(partial), openers);
      },
    );
    const size = sized(report.bytes);
    tell(
      `${file}: ${size}, ${lock === null ? 'not encrypted' : 'encrypted'}, ${openers ? 'verified' : 'not verified; to verify it, run: muster backup verify --identity KEYFILE'}`,
    );
    const removed = series !== null && keep !== null ? await keepNewest(series, keep) : [];
    for (const name of removed) tell(`removed: ${name}`);
    return { file, ...report, verified: openers !== null, removed };
  },
};

const verify: OfflineCommand = {
  words: ['FILE'],
  options: openerOptions,
  usage: backup.usage,
  run: async (_config, _dataDir, [file = ''], terminal) => {
    const bytes = file === '-' ? terminal.stdin : createReadStream(file);
    const verdict = await verifyBackup(bytes, openersOf(terminal.given, terminal.env, passphraseUse));
    terminal.tell(
      `valid backup of ${verdict.created_at} (Muster ${verdict.muster_version}, ${verdict.database}): ${counted(verdict.rows, 'row')}, ${counted(verdict.samples, 'sample')}, ${counted(verdict.transcripts, 'transcript')}; the audit log is an unbroken chain of ${counted(verdict.audit_events, 'event')}`,
    );
    if (verdict.keys_elsewhere.length > 0)
      terminal.tell(`keys that some secrets need and that are not in the backup: ${verdict.keys_elsewhere.join(', ')}`);
    return { ok: true, ...verdict };
  },
};

const restore: OfflineCommand = {
  words: ['FILE'],
  options: { ...openerOptions, force: { type: 'boolean' } },
  usage: `Usage: muster restore [options] FILE

Restores a backup from a file, or from standard input for \`-\`, into an empty
data directory and, with PostgreSQL, an empty database. The kind of database may
differ from that of the backup. Either everything is restored, or nothing. Stop
the orchestrator first. The configuration from the backup is stored separately
and does not take effect.

After the start, agents reconnect on their own. Operators must sign in again,
and enrollment tokens are revoked, because some may have been used since.
Operations that were open at the time of the backup become \`interrupted\`.
Operators, agents, and secrets that were removed after the backup exist again.

${locationOptions}  --force                    Move existing data aside and keep it
  --passphrase-file FILE     Passphrase; or MUSTER_BACKUP_PASSPHRASE
  --identity FILE            File with the AGE-SECRET-KEY-1… that decrypts it

Examples:
  $ muster restore --data-dir /var/lib/muster-orchestrator muster.backup
  $ muster restore --data-dir ./data --database-url-file ./url muster.backup
`,
  run: async (config, dataDir, [file = ''], terminal) => {
    const { given, env, tell } = terminal;
    if (file !== '-') await stat(file);
    const report = await restoreBackup({
      config,
      dataDir,
      bytes: file === '-' ? terminal.stdin : createReadStream(file),
      openers: openersOf(given, env, passphraseUse),
      force: given.force === true,
      now: terminal.now,
      tell,
    });
    tell(
      `restored: ${counted(report.rows, 'row')}, ${counted(report.samples, 'sample')}, ${counted(report.transcripts, 'transcript')}`,
    );
    for (const former of report.aside) tell(`former data: ${former}`);
    if (report.configuration !== null) tell(`configuration from the backup: ${report.configuration}`);
    if (report.keys_elsewhere.length > 0)
      tell(`keys that some secrets need and that are not in the backup: ${report.keys_elsewhere.join(', ')}`);
    tell(
      'start the orchestrator (systemctl start muster-orchestrator), and check the operators: operators who were removed after the backup exist again',
    );
    return report;
  },
};

export const backupCommands: Readonly<Record<string, OfflineCommand>> = { backup, 'backup verify': verify, restore };

/** Writes a temporary file, syncs and verifies it, and renames it to the final name. */
async function writeVerified<T>(
  path: string,
  work: (write: (bytes: Uint8Array) => Promise<void>) => Promise<T>,
  look: (partial: string) => Promise<void>,
): Promise<T> {
  const partial = `${path}.partial`;
  await rm(partial, { force: true });
  const handle = await open(partial, 'wx', 0o600);
  const drop = () => {
    void rm(partial, { force: true }).finally(() => process.exit(130));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, drop);
  try {
    const hash = createHash('sha256');
    const report = await work(async (bytes) => {
      hash.update(bytes);
      await writeAll(handle, bytes);
    });
    await handle.sync();
    await handle.close();
    const again = createHash('sha256');
    for await (const piece of createReadStream(partial) as AsyncIterable<Buffer>) again.update(piece);
    if (again.digest('hex') !== hash.digest('hex'))
      throw new TransferRefused('the file on disk differs from the written data; the file was deleted');
    await look(partial);
    await rename(partial, path);
    const directory = await open(dirname(path), 'r');
    await directory.sync().finally(() => directory.close());
    return report;
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, drop);
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
}

const written = (stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
