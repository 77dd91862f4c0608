import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DirectoryInUse, lockDirectory } from '../../../lib/src/instance-lock.ts';
import type { Config } from '../config/schema.ts';
import { takePostgresLock } from '../store/postgres/postgres-lock.ts';

/** The database that an offline command uses. The lock prevents an orchestrator from starting with this database. */
export type LockedDatabase = {
  /** Name of the database for use in messages, without the password. */
  readonly name: string;
  release(): Promise<void>;
} & (
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly applicationName: string }
);

/**
 * Locks the configured database.
 * @param make whether to create a missing data directory
 * @throws DirectoryInUse or DatabaseInUse if an orchestrator is using the database
 */
export async function lockDatabase(config: Config, dataDir: string, make: boolean): Promise<LockedDatabase> {
  if (config.database_url !== null) {
    const url = config.database_url.reveal();
    const lost = () => {
      process.stderr.write('the connection to the database was lost; nothing was changed\n');
      process.exit(1);
    };
    const lock = await takePostgresLock(url, { replica: null }, { onLost: lost, onTaken: lost });
    const { applicationName } = lock;
    return { kind: 'postgres', name: String(config.database_url), url, applicationName, release: () => lock.release() };
  }
  if (make) await mkdir(dataDir, { recursive: true, mode: 0o700 });
  try {
    const release = await lockDirectory(dataDir, 'orchestrator');
    const file = join(dataDir, 'muster.db');
    return { kind: 'sqlite', name: file, file, release: async () => release() };
  } catch (error) {
    if (error instanceof DirectoryInUse || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Error(`the data directory ${dataDir} does not exist`, { cause: error });
  }
}
