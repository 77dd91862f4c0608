import { createReadStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { measureNames, type Sample } from '@muster/protocol';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { ensurePrivateDirectory } from '../../../lib/src/private-file.ts';
import type { Config } from '../config/schema.ts';
import { restoredKey } from '../domain/fleet/restored.ts';
import type { SampleStore } from '../store/samples/samples.ts';
import { openPostgresSamples } from '../store/samples/samples-postgres.ts';
import { openSqliteSamples } from '../store/samples/samples-sqlite.ts';
import { openSqliteReader } from '../store/sqlite/sqlite-connection.ts';
import { fillDatabase } from '../store/transfer/transfer.ts';
import { inspectPostgres, postgresTarget } from '../store/transfer/transfer-postgres.ts';
import { sqliteTarget } from '../store/transfer/transfer-sqlite.ts';
import { TransferRefused, type TransferTarget } from '../store/transfer/transfer-table.ts';
import type { BackupHeader } from './backup-format.ts';
import { linesOf, readBackup, refuseUnrestorable } from './backup-read.ts';
import type { Openers } from './encryption.ts';
import { type LockedDatabase, lockDatabase } from './locked-database.ts';
import {
  beginRestore,
  completeRestore,
  contentOf,
  dropRestore,
  finishRestore,
  markDatabase,
  RestoreIncomplete,
  restoreStamp,
} from './restore-place.ts';

/**
 * Restores a backup into an empty data directory and an empty database, either completely or not at all. Supports
 * SQLite and PostgreSQL.
 */

export interface RestoreOptions {
  readonly config: Config;
  readonly dataDir: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly openers: Openers;
  readonly force: boolean;
  readonly now: () => number;
  readonly tell: (line: string) => void;
}

export interface RestoreReport {
  readonly id: string;
  readonly created_at: string;
  readonly database: string;
  readonly rows: number;
  readonly samples: number;
  readonly transcripts: number;
  /** Paths to which the previous data was moved. */
  readonly aside: readonly string[];
  /** Path of the configuration from the backup; null without one. */
  readonly configuration: string | null;
  readonly keys_elsewhere: readonly string[];
}

const configurationFolder = 'restored-configuration';

/**
 * Restores a backup.
 * @throws TransferRefused, LockError, and disk or database server errors. Unless the content is already complete, nothing
 *   has changed; otherwise, the next start of the orchestrator finishes the restore.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { config, dataDir } = options;
  ensurePrivateDirectory(dataDir);
  const unlock = await lockDirectory(dataDir, 'orchestrator');
  try {
    if (await finishInterrupted(dataDir))
      throw new TransferRefused(
        `an interrupted restore into ${dataDir} was completed now: start the orchestrator, or restore again with --force`,
      );
    const there = await contentOf(dataDir);
    if (there.length > 0 && !options.force)
      throw new TransferRefused(
        `${dataDir} is not empty (${there.slice(0, 3).join(', ')}…): restore into an empty directory, or use --force, which moves the existing data aside`,
      );
    const locked = config.database_url === null ? null : await lockDatabase(config, dataDir, false);
    try {
      return await restoreLocked(options, locked, there.length > 0);
    } finally {
      await locked?.release();
    }
  } finally {
    unlock();
  }
}

/** Finishes an interrupted restore whose content is complete. Ignores a restore with incomplete content. */
const finishInterrupted = (dataDir: string): Promise<boolean> =>
  finishRestore(dataDir).catch((error: unknown) => {
    if (error instanceof RestoreIncomplete) return false;
    throw error;
  });

async function restoreLocked(
  options: RestoreOptions,
  locked: LockedDatabase | null,
  occupied: boolean,
): Promise<RestoreReport> {
  const { config, dataDir, force, tell } = options;
  const stamp = restoreStamp(options.now());
  const aside: string[] = [];
  const { content, scratch } = await beginRestore(dataDir);
  await mkdir(join(content, 'terminals'), { mode: 0o700 });
  const samplesFile = join(scratch, 'samples');
  let transcripts = 0;
  let configuration: string | null = null;
  /** The database that has been filled but not committed. */
  let target: TransferTarget | null = null;
  try {
    let about: BackupHeader | null = null;
    let rows = 0;
    let schema: string | null = null;
    const { header, manifest } = await readBackup(options.bytes, options.openers, {
      header: async (found) => {
        refuseUnrestorable(found);
        about = found;
        tell(`restoring the backup of ${found.created_at}, made by Muster ${found.muster_version}`);
      },
      file: async (kind, name, bytes) => {
        const folder = kind === 'terminals' ? 'terminals' : kind === 'config' ? configurationFolder : '';
        if (kind === 'config') {
          await mkdir(join(content, folder), { recursive: true, mode: 0o700 });
          configuration = join(dataDir, folder);
        } else if (kind === 'terminals') transcripts++;
        await intoNewFile(join(content, folder, basename(name)), bytes);
      },
      samples: (bytes) => intoNewFile(samplesFile, bytes),
      rows: async (bytes) => {
        const now = () => Math.floor(options.now() / 1000);
        if (locked?.kind === 'postgres') {
          const mark = await inspectPostgres(locked.url, restoredKey);
          // A previous restore of this backup was interrupted after it committed the rows.
          if (mark.rows && mark.setting?.includes((about as unknown as BackupHeader).id)) return;
          if (mark.rows && force) schema = `muster_before_restore_${stamp.toLowerCase().replace('-', '_')}`;
        }
        target =
          locked?.kind === 'postgres'
            ? await postgresTarget(locked.url, locked.name, locked.applicationName, now, schema)
            : sqliteTarget(join(content, 'muster.db'), now);
        rows = (await fillDatabase(bytes, target)).rows;
      },
    });
    // Commits only now, after the whole backup has been verified.
    if (locked !== null) await markDatabase(dataDir, schema);
    await (target as TransferTarget | null)?.commit();
    if (schema !== null) aside.push(`the schema ${schema} of the database`);
    if (locked === null) checkFile(join(content, 'muster.db'));
    const samples = await loadSamples(config, locked, samplesFile, join(content, 'metrics.db'));
    if (samples !== manifest.samples) throw new TransferRefused('some samples of the backup could not be restored');
    const formerName = occupied ? `before-restore-${stamp}` : null;
    if (formerName !== null) aside.push(join(dataDir, formerName));
    await completeRestore(dataDir, formerName);
    const { id, created_at } = header;
    const database = locked?.name ?? join(dataDir, 'muster.db');
    const keys_elsewhere = manifest.keys_elsewhere;
    return {
      id,
      created_at,
      database,
      rows: rows || manifest.rows,
      samples,
      transcripts,
      aside,
      configuration,
      keys_elsewhere,
    };
  } catch (error) {
    await dropRestore(dataDir).catch(() => undefined);
    throw error;
  } finally {
    await (target as TransferTarget | null)?.close();
  }
}

async function intoNewFile(path: string, bytes: AsyncIterable<Buffer>): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    for await (const piece of bytes) await handle.appendFile(piece);
  } finally {
    await handle.close();
  }
}

/** @throws TransferRefused if SQLite's integrity check fails */
function checkFile(file: string): void {
  const db = openSqliteReader(file);
  try {
    const verdict = db.pragma('integrity_check(1)', { simple: true });
    if (verdict !== 'ok') throw new TransferRefused(`the restored database is damaged: ${verdict}`);
  } finally {
    db.close();
  }
}

const atOnce = 10_000;

/** Writes the samples to a file. @returns number of samples */
async function loadSamples(
  config: Config,
  locked: LockedDatabase | null,
  file: string,
  target: string,
): Promise<number> {
  let failure: Error | null = null;
  const retentionSecs = config.metrics.retention;
  const store: SampleStore =
    locked?.kind === 'postgres'
      ? await openPostgresSamples({ url: locked.url, retentionSecs })
      : await openSqliteSamples({
          file: target,
          retentionSecs,
          onFatal: (reason) => {
            failure = reason;
          },
        });
  try {
    let count = 0;
    let byNode = new Map<string, Sample[]>();
    let waiting = 0;
    const flush = async () => {
      await Promise.all([...byNode].map(([nodeId, samples]) => store.add(nodeId, samples)));
      if (failure !== null) throw failure;
      byNode = new Map();
      waiting = 0;
    };
    for await (const line of linesOf(createReadStream(file) as AsyncIterable<Buffer>)) {
      const [nodeId, collected_at, ...measures] = JSON.parse(line) as [string, number, ...(number | null)[]];
      const named = measureNames.map((name, index) => [name, measures[index] ?? null] as const);
      const sample = { collected_at, ...Object.fromEntries(named) } as Sample;
      const of = byNode.get(nodeId);
      if (of) of.push(sample);
      else byNode.set(nodeId, [sample]);
      count++;
      if (++waiting >= atOnce) await flush();
    }
    await flush();
    return count;
  } finally {
    await store.close();
  }
}
