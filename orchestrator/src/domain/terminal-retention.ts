import { encodeTime } from 'ulid';
import { deleteTerminals, endedTerminals } from '../store/terminals.ts';
import type { Transcripts } from '../store/transcripts.ts';
import { statement } from '../store/unit.ts';
import { type Context, seconds } from './context.ts';

/** Terminal sessions that were kept long enough go, with what they showed: some at a time, files before rows. */

const atOnce = 100;
const daySecs = 86_400;

/**
 * @param days how long sessions are kept after their end; 0: for ever
 * @returns how many went
 */
export async function pruneTerminals(
  { db, now }: Pick<Context, 'db' | 'now'>,
  transcripts: Pick<Transcripts, 'remove'>,
  days: number,
): Promise<number> {
  if (days === 0) return 0;
  const before = Math.max(0, seconds(now()) - days * daySecs);
  const below = encodeTime(before * 1000, 10);
  let removed = 0;
  for (let after = ''; ; ) {
    const ids = (await db.all(endedTerminals, { after, below, before, limit: atOnce })).map((row) => row.session_id);
    // A file that cannot be removed keeps its row: it is tried again.
    for (const id of ids) await transcripts.remove(id);
    if (ids.length > 0) await db.write({ name: 'terminals/prune', statements: [statement(deleteTerminals, { ids })] });
    removed += ids.length;
    if (ids.length < atOnce) return removed;
    after = ids.at(-1) as string;
  }
}
