import { encodeTime } from 'ulid';
import { deleteTerminals, endedTerminals, knownTerminals } from '../../store/queries/terminals.ts';
import { statement } from '../../store/transaction.ts';
import type { Transcripts } from '../../store/transcripts/transcripts.ts';
import { type Context, seconds } from '../shared/context.ts';

/** Deletes old terminal sessions in batches, each transcript before its row. */

const atOnce = 100;
const daySecs = 86_400;

/**
 * Deletes sessions past their retention.
 * @param days days for which sessions are kept after they end; 0 keeps them forever
 * @returns the number of deleted sessions
 */
export async function pruneTerminals(
  context: Pick<Context, 'db' | 'now' | 'log'>,
  transcripts: Pick<Transcripts, 'remove' | 'ids'>,
  days: number,
): Promise<number> {
  if (days === 0) return 0;
  const { db, now } = context;
  const before = Math.max(0, seconds(now()) - days * daySecs);
  const below = encodeTime(before * 1000, 10);
  let removed = 0;
  for (let after = ''; ; ) {
    const expired = (await db.all(endedTerminals, { after, below, before, limit: atOnce })).map(
      (row) => row.session_id,
    );
    const ids = await removeTranscripts(context, transcripts, expired);
    if (ids.length > 0) await db.write({ name: 'terminals/prune', statements: [statement(deleteTerminals, { ids })] });
    removed += ids.length;
    if (expired.length < atOnce) break;
    after = expired.at(-1) as string;
  }
  await pruneOrphans(context, transcripts, below);
  return removed;
}

/**
 * Removes transcripts.
 * @returns the sessions whose transcripts were removed. The other sessions keep their rows, so that the removal is
 *   retried
 */
async function removeTranscripts(
  { log }: Pick<Context, 'log'>,
  transcripts: Pick<Transcripts, 'remove'>,
  ids: readonly string[],
): Promise<string[]> {
  const removed: string[] = [];
  for (const id of ids)
    try {
      await transcripts.remove(id);
      removed.push(id);
    } catch (error) {
      log.warn({ err: error, session_id: id }, 'failed to remove expired transcript');
    }
  return removed;
}

/**
 * Deletes transcripts without a row. Such transcripts remain if the process crashes while opening a session, or starts
 * with another database.
 */
async function pruneOrphans(
  context: Pick<Context, 'db' | 'log'>,
  transcripts: Pick<Transcripts, 'remove' | 'ids'>,
  below: string,
): Promise<void> {
  for (let after = ''; ; ) {
    const ids = await transcripts.ids({ after, below, limit: atOnce });
    const known = new Set((await context.db.all(knownTerminals, { ids })).map((row) => row.session_id));
    await removeTranscripts(
      context,
      transcripts,
      ids.filter((id) => !known.has(id)),
    );
    if (ids.length < atOnce) return;
    after = ids.at(-1) as string;
  }
}
