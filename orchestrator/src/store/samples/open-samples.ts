import { join } from 'node:path';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type { DatabaseLocation } from '../open-database.ts';
import { openSampleFile } from './sample-file.ts';
import type { SampleStore } from './samples.ts';
import { openPostgresSamples } from './samples-postgres.ts';
import { openSqliteSamples } from './samples-sqlite.ts';

/**
 * Opens the sample store: a file next to the SQLite file, or tables in the PostgreSQL database, whose schema must be
 * migrated.
 */
export function openSamples(
  location: DatabaseLocation,
  dataDir: string,
  retentionSecs: number,
  { clock, log }: { readonly clock: Pick<Clock, 'after'>; readonly log: Log },
): Promise<SampleStore> {
  const { postgres } = location;
  if (postgres === null) {
    const file = join(dataDir, 'metrics.db');
    return openSampleFile({
      file,
      open: (onFatal) => openSqliteSamples({ file, retentionSecs, onFatal }),
      clock,
      log,
    });
  }
  return openPostgresSamples({
    url: postgres.url,
    statementTimeout: postgres.statementTimeout,
    retentionSecs,
    onConnectionError: (error) => log.warn({ err: error }, 'lost a connection to the sample store'),
  });
}
