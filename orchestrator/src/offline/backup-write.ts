import { createHash, createPrivateKey, hash, randomBytes } from 'node:crypto';
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { systemClock } from '../../../lib/src/clock.ts';
import { nullIfMissing } from '../../../lib/src/missing-file.ts';
import { readPrivateFile } from '../../../lib/src/private-file.ts';
import type { Config } from '../config/schema.ts';
import { restoredKey } from '../domain/fleet/restored.ts';
import { rawPublicKey } from '../identity/ed25519-key.ts';
import { keyIdsOf } from '../identity/secret-keys.ts';
import { compatibleFromOf, newerSchemaNote, versionOf } from '../store/migrate.ts';
import { openFileTranscripts } from '../store/transcripts/transcripts-files.ts';
import { exportDatabase } from '../store/transfer/transfer.ts';
import { postgresSnapshot } from '../store/transfer/transfer-postgres.ts';
import { sqliteSnapshot } from '../store/transfer/transfer-sqlite.ts';
import {
  type Snapshot,
  TransferRefused,
  type TransferRow,
  type TransferSource,
  type TransferTable,
} from '../store/transfer/transfer-table.ts';
import { transcriptTables } from '../store/transfer/transfer-transcripts.ts';
import { version as musterVersion } from '../version.ts';
import {
  type BackupHeader,
  type BackupPart,
  backupVersion,
  headerName,
  type Manifest,
  type ManifestEntry,
  manifestName,
} from './backup-format.ts';
import { counted } from './counted.ts';
import { encrypting, type Lock } from './encryption.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';

/** Streams a backup from a consistent snapshot while the orchestrator runs. */

export interface BackupOptions {
  readonly config: Config;
  readonly dataDir: string;
  /** Path of the configuration file; null without one. */
  readonly configFile: string | null;
  readonly without: readonly BackupPart[];
  readonly lock: Lock;
  readonly now: () => number;
  readonly tell: (line: string) => void;
}

export interface BackupReport {
  readonly id: string;
  readonly created_at: string;
  readonly bytes: number;
  readonly rows: number;
  readonly samples: number;
  readonly transcripts: number;
  readonly keys_elsewhere: readonly string[];
  readonly encrypted: boolean;
}

/** Approximate size of a `rows` or `metrics` entry, in bytes. */
const pieceBytes = 4 * 1024 * 1024;
/**
 * Growth of SQLite's write-ahead log above which the backup is aborted, in bytes. SQLite cannot checkpoint the log
 * while a snapshot is being read.
 */
const maxLogGrowth = 1024 ** 3;
/**
 * Tables that a backup omits, so that operators must sign in again after a restore. Transcripts have their own entries.
 */
const excludedTables: ReadonlySet<string> = new Set([
  'sessions',
  'web_login_codes',
  'terminal_tickets',
  'replica_contacts',
  'replica_keys',
]);
const omits = (table: string): boolean => excludedTables.has(table) || transcriptTables.has(table);

/**
 * Writes a backup.
 * @param write receives the bytes of the file, and resolves when it can accept more
 */
export async function writeBackup(
  options: BackupOptions,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<BackupReport> {
  const gzip = createGzip({ level: 3 });
  const plain = Readable.toWeb(gzip) as ReadableStream<Uint8Array>;
  const sealed = options.lock === null ? plain : await encrypting(plain, options.lock);
  let bytes = 0;
  const drained = (async () => {
    for await (const piece of sealed as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      await write(piece);
    }
  })();
  // A failed write must also destroy the source.
  drained.catch((error: Error) => gzip.destroy(error));
  const put = (piece: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => gzip.write(piece, (error) => (error ? reject(error) : resolve())));
  try {
    const report = await writeEntries(options, put);
    gzip.end();
    await drained;
    return { ...report, bytes, encrypted: options.lock !== null };
  } catch (error) {
    // Destroys the stream with the cause, so that `drained` rejects with the cause instead of an abort error.
    gzip.destroy(error as Error);
    throw await drained.then(
      () => error,
      (first: unknown) => first ?? error,
    );
  }
}

async function writeEntries(options: BackupOptions, put: (bytes: Uint8Array) => Promise<void>) {
  const { config, dataDir, without, tell } = options;
  const created = options.now();
  const archive = new Archive(put, Math.floor(created / 1000));
  const identity = readPrivateFile(join(dataDir, 'identity.key'));
  if (identity === null)
    throw new Error(`${dataDir} is not the data directory of an orchestrator: it has no identity.key`);
  // With PostgreSQL, an orchestrator may be moving files into the database. A file that is missing here is in the snapshot.
  const former = config.database_url === null ? null : await transcriptFiles(options);
  const { snapshot, secretsKeys } = await consistentSnapshot(options);
  try {
    // Lists transcripts with their sizes at the time of the snapshot. Output after the snapshot is omitted.
    const files = former ?? (await transcriptFiles(options));
    const ownKeys = secretsKeys === null ? [] : keyIdsOf(secretsKeys);
    const applied = await snapshot.applied();
    const header: BackupHeader = {
      muster_backup: backupVersion,
      id: randomBytes(16).toString('hex'),
      created_at: new Date(created).toISOString(),
      muster_version: musterVersion,
      schema_version: versionOf(applied),
      compatible_from: compatibleFromOf(applied),
      database: config.database_url === null ? 'sqlite' : 'postgres',
      public_key: (rawPublicKey(createPrivateKey(identity)) as Buffer).toString('hex'),
      without,
      secret_keys: ownKeys,
    };
    await archive.text(headerName, `${JSON.stringify(header)}\n`);
    await archive.text('keys/identity.key', identity);
    if (secretsKeys !== null) await archive.text('keys/secrets.keys', secretsKeys);
    for (const name of ['api.key', 'api.crt']) {
      const text = readPrivateFile(join(dataDir, name));
      if (text !== null) await archive.text(`keys/${name}`, text);
    }
    for (const [name, path] of [
      ['orchestrator.yml', options.configFile],
      ['tls_cert.pem', config.tls_cert],
      ['tls_key.pem', config.tls_key],
    ] as const)
      if (path !== null) await archive.text(`config/${name}`, await readFile(path, 'utf8'));
    const recorded = await writeTranscripts(archive, snapshot, files, options);
    const watch = await logWatch(config, dataDir);
    const samples = without.includes('metrics') ? 0 : await writeSamples(archive, snapshot, watch);
    const about = { id: header.id, created_at: header.created_at };
    const source = new BackupSource(snapshot, about);
    const pieces = archive.pieces('rows');
    const { rows } = await exportDatabase(
      source,
      async (text) => {
        await watch();
        await pieces.add(text);
      },
      { musterVersion, now: new Date(created) },
    );
    await pieces.end();
    const elsewhere = [...source.keyIds].filter((id) => !ownKeys.includes(id)).sort();
    await archive.end({ rows, samples, keys_elsewhere: elsewhere });
    tell(
      `${counted(rows, 'row')}, ${counted(samples, 'sample')}, ${counted(recorded, 'transcript')}, as of ${header.created_at}`,
    );
    const note = newerSchemaNote(header.schema_version);
    if (note !== null) tell(note);
    if (elsewhere.length > 0)
      tell(
        `not included: the secrets keys ${elsewhere.join(', ')}, which are stored outside the data directory. Keep a copy of these keys: without them, their secrets are lost`,
      );
    return { ...about, rows, samples, transcripts: recorded, keys_elsewhere: elsewhere };
  } finally {
    await snapshot.close();
  }
}

/**
 * Opens a snapshot of the database, and reads the keys that it needs. Retries if the keys change before the snapshot is
 * open.
 */
async function consistentSnapshot({
  config,
  dataDir,
  without,
}: BackupOptions): Promise<{ snapshot: Snapshot; secretsKeys: string | null }> {
  const keys = () => readPrivateFile(join(dataDir, 'secrets.keys'));
  for (let attempt = 1; ; attempt++) {
    const before = await keys();
    const snapshot =
      config.database_url === null
        ? sqliteSnapshot(join(dataDir, 'muster.db'), without.includes('metrics') ? null : join(dataDir, 'metrics.db'))
        : await postgresSnapshot(config.database_url.reveal(), String(config.database_url));
    const secretsKeys = await keys();
    if (before === secretsKeys || attempt === 5) return { snapshot, secretsKeys };
    await snapshot.close();
  }
}

interface TranscriptFile {
  readonly id: string;
  readonly size: number;
}

async function transcriptFiles({ dataDir, without }: BackupOptions): Promise<TranscriptFile[]> {
  const directory = join(dataDir, 'terminals');
  if (without.includes('transcripts') || !(await stat(directory).catch(() => null))) return [];
  const found: TranscriptFile[] = [];
  const transcripts = await openFileTranscripts(directory, systemClock);
  for (const id of await transcripts.ids({ after: '', below: '~', limit: Number.POSITIVE_INFINITY })) {
    // The file may no longer exist, because the retention task may have deleted the transcript.
    const about = await stat(join(directory, `${id}.cast`)).catch(() => null);
    if (about) found.push({ id, size: about.size });
  }
  return found;
}

/** @returns the number of transcripts */
async function writeTranscripts(
  archive: Archive,
  snapshot: Snapshot,
  files: readonly TranscriptFile[],
  { config, dataDir, without }: BackupOptions,
): Promise<number> {
  const written = new Set<string>();
  const nameOf = (id: string) => `terminals/${id}.cast`;
  if (!without.includes('transcripts'))
    for await (const { id, size, content } of snapshot.transcripts()) {
      await archive.content(nameOf(id), size, content);
      written.add(id);
    }
  for (const { id, size } of files) {
    if (written.has(id)) continue;
    if (await archive.file(nameOf(id), join(dataDir, 'terminals', `${id}.cast`), size)) written.add(id);
    else if (config.database_url !== null)
      throw new TransferRefused(
        'a transcript was deleted, or moved into the database, during the backup: run the backup again',
      );
  }
  return written.size;
}

async function writeSamples(archive: Archive, snapshot: Snapshot, watch: () => Promise<void>): Promise<number> {
  const pieces = archive.pieces('metrics');
  let count = 0;
  for await (const rows of snapshot.samples()) {
    await watch();
    await pieces.add(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    count += rows.length;
  }
  await pieces.end();
  return count;
}

/**
 * Returns a function that throws if SQLite's write-ahead log has grown too large, so that a backup to a slow pipe
 * cannot fill the orchestrator's disk.
 */
async function logWatch({ database_url }: Config, dataDir: string): Promise<() => Promise<void>> {
  if (database_url !== null) return async () => {};
  const size = async () =>
    (
      await Promise.all(['muster.db-wal', 'metrics.db-wal'].map((name) => stat(join(dataDir, name)).catch(() => null)))
    ).reduce((sum, about) => sum + (about?.size ?? 0), 0);
  const first = await size();
  return async () => {
    if ((await size()) > first + maxLogGrowth)
      throw new TransferRefused(
        'the backup was aborted, because the database’s log grew too large: write the backup to a faster disk, or at a time with fewer writes',
      );
  };
}

/** Exports the database without sign-in sessions, and adds a marker that identifies a restored database. */
class BackupSource implements TransferSource {
  readonly location: string;
  readonly keyIds = new Set<string>();
  readonly #of: Snapshot;
  readonly #about: { id: string; created_at: string };

  constructor(of: Snapshot, about: { id: string; created_at: string }) {
    this.location = of.location;
    this.#of = of;
    this.#about = about;
  }

  applied = () => this.#of.applied();
  tables = () => this.#of.tables();
  counted = (table: TransferTable) => this.#of.counted(table);
  close = () => this.#of.close();

  async *rows(table: TransferTable): AsyncGenerator<readonly TransferRow[]> {
    if (omits(table.name)) return;
    const at = (name: string) => table.columns.findIndex((column) => column.name === name);
    if (table.name === 'settings') {
      const all: TransferRow[] = [];
      for await (const rows of this.#of.rows(table)) all.push(...rows);
      const mark = { key: restoredKey, value: JSON.stringify(this.#about) };
      const row = table.columns.map(({ name }) => mark[name as 'key' | 'value'] ?? null);
      const key = at('key');
      const others = all.filter((one) => one[key] !== restoredKey);
      yield [...others, row].sort((one, other) => (String(one[key]) < String(other[key]) ? -1 : 1));
      return;
    }
    const keyId = at('key_id');
    for await (const rows of this.#of.rows(table)) {
      if (keyId !== -1) for (const row of rows) if (typeof row[keyId] === 'string') this.keyIds.add(row[keyId]);
      yield rows;
    }
  }
}

class Archive {
  readonly #put: (bytes: Uint8Array) => Promise<void>;
  readonly #seconds: number;
  readonly #entries: ManifestEntry[] = [];

  constructor(put: (bytes: Uint8Array) => Promise<void>, seconds: number) {
    this.#put = put;
    this.#seconds = seconds;
  }

  async text(name: string, text: string): Promise<void> {
    const bytes = Buffer.from(text);
    await this.#put(tarHeader({ name, size: bytes.length }, this.#seconds));
    await this.#put(bytes);
    await this.#put(tarPadding(bytes.length));
    this.#entries.push({ name, size: bytes.length, sha256: hash('sha256', bytes) });
  }

  /**
   * Writes the beginning of a file as an entry.
   * @param size number of bytes to write
   * @returns false if the file does not exist
   */
  async file(name: string, path: string, size: number): Promise<boolean> {
    const handle = await open(path).catch(nullIfMissing);
    if (handle === null) return false;
    try {
      const stream = handle.createReadStream({ end: size - 1, highWaterMark: 256 * 1024, autoClose: false });
      await this.content(name, size, size === 0 ? [] : (stream as AsyncIterable<Buffer>));
    } finally {
      await handle.close();
    }
    return true;
  }

  /**
   * Writes an entry.
   * @param size length of the content in bytes
   */
  async content(name: string, size: number, pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    const hash = createHash('sha256');
    let left = size;
    await this.#put(tarHeader({ name, size }, this.#seconds));
    for await (const piece of pieces) {
      hash.update(piece);
      left -= piece.length;
      if (left >= 0) await this.#put(piece);
    }
    if (left !== 0) throw new TransferRefused(`${name} changed during the backup: run the backup again`);
    await this.#put(tarPadding(size));
    this.#entries.push({ name, size, sha256: hash.digest('hex') });
  }

  /** Splits text into several entries in one folder. */
  pieces(folder: string): { add(text: string): Promise<void>; end(): Promise<void> } {
    let count = 0;
    let lines: string[] = [];
    let length = 0;
    const flush = async () => {
      if (length === 0) return;
      const text = lines.join('');
      lines = [];
      length = 0;
      await this.text(`${folder}/${String(++count).padStart(8, '0')}`, text);
    };
    return {
      add: async (text) => {
        lines.push(text);
        length += text.length;
        if (length >= pieceBytes) await flush();
      },
      end: flush,
    };
  }

  async end(about: Omit<Manifest, 'entries'>): Promise<void> {
    const manifest: Manifest = { entries: [...this.#entries], ...about };
    await this.text(manifestName, `${JSON.stringify(manifest)}\n`);
    await this.#put(tarEnd());
  }
}
