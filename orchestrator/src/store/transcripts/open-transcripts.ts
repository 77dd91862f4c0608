import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type { DatabaseLocation } from '../open-database.ts';
import { withFormerFiles } from './former-files.ts';
import type { Transcripts } from './transcripts.ts';
import { openFileTranscripts } from './transcripts-files.ts';
import { PostgresTranscripts } from './transcripts-postgres.ts';

/**
 * Opens the transcripts: files in the data directory, or tables in the PostgreSQL database, whose schema must be
 * migrated.
 * @param incarnation ID of this process
 */
export async function openTranscripts(
  { postgres }: DatabaseLocation,
  dataDir: string,
  incarnation: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<Transcripts> {
  const directory = join(dataDir, 'terminals');
  if (postgres === null) return openFileTranscripts(directory, clock);
  const { url, statementTimeout } = postgres;
  const rows = new PostgresTranscripts({ url, statementTimeout, incarnation, clock, log });
  // Compresses transcripts that an earlier process left uncompressed.
  void rows.pack();
  return existsSync(directory) ? withFormerFiles(rows, await openFileTranscripts(directory, clock), log) : rows;
}
