import type { Log } from '../../../../lib/src/log.ts';
import { digestOf, type Transcripts } from './transcripts.ts';
import type { PostgresTranscripts } from './transcripts-postgres.ts';

/** Number of sessions to list at a time. */
const atOnce = 100;

/** Iterates over the pieces. After the signal is aborted, throws at the next piece. */
async function* until<T>(signal: AbortSignal, pieces: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
  }
}

/**
 * Serves transcripts in files together with transcripts in PostgreSQL. Such files were written by an earlier release,
 * by `muster restore`, or while the orchestrator used SQLite. Moves the files into the database in the background, one
 * after another. Until a file is moved, reads its transcript from the file.
 */
export function withFormerFiles(
  rows: PostgresTranscripts,
  files: Transcripts,
  log: Pick<Log, 'info' | 'warn'>,
): Transcripts {
  const closing = new AbortController();
  const { signal } = closing;

  /** Reads the rows again if the file is missing, because it may have been moved after the first read. */
  const read = async <T>(from: (transcripts: Transcripts) => Promise<T | null>): Promise<T | null> =>
    (await from(rows)) ?? (await from(files)) ?? (await from(rows));

  const digestIn = async (transcripts: Transcripts, sessionId: string): Promise<string | null> => {
    const content = await transcripts.cast(sessionId);
    return content === null ? null : (await digestOf(until(signal, content))).sha256;
  };

  const move = async (sessionId: string): Promise<void> => {
    await files.repair(sessionId);
    const content = await files.cast(sessionId);
    if (content === null) return;
    await rows.store(sessionId, until(signal, content));
    const [stored, former] = [await digestIn(rows, sessionId), await digestIn(files, sessionId)];
    if (stored !== former) throw new Error('the database has another transcript of this session');
    await files.remove(sessionId);
  };
  const moveAll = async (): Promise<void> => {
    let moved = 0;
    for (let after = ''; !signal.aborted; ) {
      const ids = await files.ids({ after, below: '~', limit: atOnce });
      for (const sessionId of ids)
        if (!signal.aborted)
          try {
            await move(sessionId);
            moved++;
          } catch (error) {
            if (!signal.aborted)
              log.warn(
                { err: error, session_id: sessionId },
                'failed to move transcript into the database; will retry after the next start',
              );
          }
      if (ids.length < atOnce) break;
      after = ids.at(-1) as string;
    }
    if (moved > 0) log.info({ transcripts: moved }, 'moved transcripts from the data directory into the database');
  };
  const moving = moveAll().catch((error: unknown) => log.warn({ err: error }, 'failed to list transcripts'));

  return {
    create: (sessionId, onFailure) => rows.create(sessionId, onFailure),
    has: async (sessionId) => (await read(async (from) => (await from.has(sessionId)) || null)) ?? false,
    raw: (sessionId) => read((from) => from.raw(sessionId)),
    cast: (sessionId) => read((from) => from.cast(sessionId)),
    part: (sessionId, from, to) => rows.part(sessionId, from, to),
    async repair(sessionId) {
      await files.repair(sessionId);
      await rows.repair(sessionId);
    },
    digest: (sessionId) => read((from) => from.digest(sessionId)),
    async remove(sessionId) {
      // Removes the file first, so that it is not moved after its rows were removed.
      await files.remove(sessionId);
      await rows.remove(sessionId);
    },
    async ids(range) {
      const ids = new Set([...(await rows.ids(range)), ...(await files.ids(range))]);
      return [...ids].sort().slice(0, range.limit);
    },
    get recorded() {
      return rows.recorded;
    },
    get syncs() {
      return rows.syncs;
    },
    async close() {
      closing.abort();
      await moving;
      await files.close();
      await rows.close();
    },
  };
}
