import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Config } from '../config/schema.ts';
import type { Disposables } from '../disposables.ts';
import { loadSecretKeys, readSecretKeys, type SecretKeys } from '../identity/secret-keys.ts';
import type { Database } from '../store/database.ts';
import { type DatabaseLocation, openDatabase } from '../store/open-database.ts';
import { anyChannel } from '../store/queries/channels.ts';
import { anySecret } from '../store/queries/secrets.ts';
import type { StoredKey } from '../store/replicas.ts';
import { openSamples } from '../store/samples/open-samples.ts';
import type { SampleStore } from '../store/samples/samples.ts';
import { openTranscripts } from '../store/transcripts/open-transcripts.ts';
import type { Transcripts } from '../store/transcripts/transcripts.ts';

/** The stores on disk and in the database, and the keys that encrypt secrets. */
export interface Store {
  readonly db: Database;
  readonly samples: SampleStore;
  readonly transcripts: Transcripts;
  readonly secretKeys: SecretKeys;
}

export interface StoreOptions {
  /** ID of this process. */
  readonly incarnation: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onFatal: (reason: Error) => void;
  /**
   * Compares the keys of this replica with those of the other replicas, before the database is migrated. Null without
   * replicas.
   * @param secretKeys null if this replica has none
   */
  readonly requireKeys: ((stored: readonly StoredKey[], secretKeys: SecretKeys | null) => void) | null;
  /** Called after each commit. @param units number of writes that shared the transaction */
  readonly onCommit: (units: number, ms: number) => void;
}

/**
 * Opens the stores in a data directory, and migrates the database.
 * @throws DatabaseInUse, SchemaRefused, KeysDiffer, and database server or disk errors
 */
export async function openStore(
  config: Config,
  dataDir: string,
  options: StoreOptions,
  disposables: Disposables,
): Promise<Store> {
  const { clock, log } = options;
  const part = log.child({ part: 'database' });
  const location = databaseLocation(config, dataDir);
  const places = { dataDir, file: config.secrets_key_file, env: process.env };
  const { requireKeys } = options;
  const known = requireKeys && (await readSecretKeys(places));
  const db = await openDatabase(location, {
    now: () => clock.now(),
    onFatal: options.onFatal,
    onCommit: options.onCommit,
    onMigrated: (report) => {
      if (report.from !== report.to) log.info({ ...report }, 'database schema migrated');
    },
    checkKeys: requireKeys && ((stored) => requireKeys(stored, known)),
    log: part,
  });
  disposables.add(() => db.close());
  const samples = await openSamples(location, dataDir, config.metrics.retention, { clock, log: part });
  disposables.add(() => samples.close());
  const secretKeys = await loadSecretKeys({
    ...places,
    hasSecrets: async () => ((await db.get(anySecret, {})) ?? (await db.get(anyChannel, {}))) !== undefined,
  });
  if (secretKeys.rotationCutOff)
    log.warn(
      { keys: secretKeys.ids },
      'secrets key rotation is incomplete; secrets still work. Run `muster secrets rotate-key` to complete it',
    );
  const transcripts = await openTranscripts(location, dataDir, options.incarnation, { clock, log: part });
  disposables.add(() => transcripts.close());
  return { db, samples, transcripts, secretKeys };
}

const databaseLocation = (config: Config, dataDir: string): DatabaseLocation => ({
  file: join(dataDir, 'muster.db'),
  postgres:
    config.database_url === null
      ? null
      : {
          url: config.database_url.reveal(),
          poolSize: config.database_pool_size,
          statementTimeout: config.database_statement_timeout,
          replica: config.replica.name,
        },
});
