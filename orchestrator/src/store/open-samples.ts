import { join } from 'node:path';
import type { DatabasePlace, DatabaseSurroundings } from './open-database.ts';
import type { SampleStore } from './samples.ts';
import { openPostgresSamples } from './samples-postgres.ts';
import { openSqliteSamples } from './samples-sqlite.ts';

/** Opens the samples of the database at a place, which has been opened: beside its file, or in its server. */
export function openSamples(
  place: DatabasePlace,
  dataDir: string,
  retentionSecs: number,
  { onFatal, log }: Pick<DatabaseSurroundings, 'onFatal' | 'log'>,
): Promise<SampleStore> {
  const { postgres } = place;
  if (postgres === null) return openSqliteSamples({ file: join(dataDir, 'metrics.db'), retentionSecs, onFatal });
  return openPostgresSamples({
    url: postgres.url,
    statementTimeout: postgres.statementTimeout,
    retentionSecs,
    onConnectionError: (error) => log.warn({ err: error }, 'a connection to the samples was lost'),
  });
}
