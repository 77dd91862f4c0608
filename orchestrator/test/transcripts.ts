import { join } from 'node:path';
import { afterEach } from 'vitest';
import { ManualClock } from '../../lib/test/manual-clock.ts';
import type { Transcripts } from '../src/store/transcripts/transcripts.ts';
import { openFileTranscripts } from '../src/store/transcripts/transcripts-files.ts';
import { PostgresTranscripts, type PostgresTranscriptsOptions } from '../src/store/transcripts/transcripts-postgres.ts';
import type { DatabaseAddress, DatabaseFixture } from './databases/databases.ts';

const silent = { warn: () => {} };

/** Opens transcripts in a PostgreSQL database. */
export const transcriptsIn = (
  url: string,
  { incarnation = 'one', clock = new ManualClock() as PostgresClock } = {},
): PostgresTranscripts => new PostgresTranscripts({ url, incarnation, clock, log: silent });

type PostgresClock = PostgresTranscriptsOptions['clock'];

/**
 * Call this while defining a suite.
 * @returns functions that open transcripts, which are closed after the test
 */
export function transcriptsFixture(fixture: DatabaseFixture) {
  const open: Transcripts[] = [];
  afterEach(async () => {
    for (const transcripts of open.splice(0)) await transcripts.close();
  });
  return {
    /** The location of transcripts: a directory, or a migrated database. */
    async place(): Promise<DatabaseAddress> {
      const at = await fixture.newAddress();
      if (fixture.kind === 'sqlite') return join(`${at}-transcripts`, 'terminals');
      await (await fixture.open({ at })).close();
      return at;
    },
    async open(
      at: DatabaseAddress,
      options: { incarnation?: string; clock?: PostgresClock } = {},
    ): Promise<Transcripts> {
      const transcripts =
        fixture.kind === 'sqlite'
          ? await openFileTranscripts(at, options.clock ?? new ManualClock())
          : transcriptsIn(at, options);
      open.push(transcripts);
      return transcripts;
    },
  };
}
