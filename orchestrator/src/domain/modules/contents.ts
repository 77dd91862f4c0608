import { createHash } from 'node:crypto';
import { encodeTime } from 'ulid';
import { fromJson } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import {
  basesOfOpenRuns,
  contentsByHash,
  deleteContents,
  deleteFilesOfRemoved,
  deletePieces,
  insertContents,
  insertPiece,
  openOperationWith,
  orphanPieces,
  removedWithFiles,
  unneededContents,
} from '../../store/queries/contents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import { pieceBytes, readContent, type WrittenContent } from '../shared/module-files.ts';

/**
 * Stores file contents in the database, in pieces. Identical contents are stored once. Contents become visible in the
 * transaction that first uses them, so a crash or a refusal leaves no incomplete contents. Orphaned pieces are deleted
 * later.
 */

/** Number of pieces per transaction. */
const piecesAtOnce = 4;

type Store = Pick<Context, 'db' | 'newId'>;

/**
 * Writes a file's contents in pieces. Resolves when they are durable; {@link keepContents} makes the contents visible.
 */
export async function writeContent({ db, newId }: Store, source: AsyncIterable<Uint8Array>): Promise<WrittenContent> {
  const content_id = newId();
  const hash = createHash('sha256');
  let size = 0;
  let position = 0;
  let statements: Statement[] = [];
  const flush = async () => {
    if (statements.length === 0) return;
    const batch = statements;
    statements = [];
    await db.write({ name: 'contents/write', statements: batch });
  };
  const add = async (bytes: Uint8Array) => {
    statements.push(statement(insertPiece, { content_id, position: position++, bytes }));
    if (statements.length >= piecesAtOnce) await flush();
  };
  let piece = new Uint8Array(pieceBytes);
  let filled = 0;
  const writeAll = async () => {
    for await (const chunk of source) {
      hash.update(chunk);
      size += chunk.length;
      for (let at = 0; at < chunk.length; ) {
        const part = chunk.subarray(at, at + pieceBytes - filled);
        piece.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled < pieceBytes) continue;
        await add(piece);
        piece = new Uint8Array(pieceBytes);
        filled = 0;
      }
    }
    if (filled > 0) await add(piece.slice(0, filled));
    await flush();
  };
  try {
    await writeAll();
  } catch (error) {
    // If this fails too, the pieces are deleted later.
    await dropPieces({ db }, content_id, position).catch(() => {});
    throw error;
  }
  return { content_id, size, sha256: hash.digest('hex') };
}

/** Returns the statement that makes contents visible, for the transaction that uses them. */
export const keepContents = (contents: readonly WrittenContent[]): Statement =>
  statement(insertContents, {
    rows: jsonRows(contents.map(({ sha256, content_id, size }) => ({ sha256, content_id, size }))),
  });

/**
 * Deletes the pieces of contents that did not become visible, because the upload was refused or identical contents were
 * already stored.
 */
export async function dropUnused({ db }: Pick<Context, 'db'>, contents: readonly WrittenContent[]): Promise<void> {
  for (const { content_id, size } of contents) await dropPieces({ db }, content_id, Math.ceil(size / pieceBytes));
}

async function dropPieces({ db }: Pick<Context, 'db'>, content_id: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += atOnce)
    await db.write({
      name: 'contents/drop pieces',
      statements: [statement(deletePieces, { content_id, from, below: from + atOnce })],
    });
}

/** Iterates over the bytes of a file's contents. */
export async function* contentBytes(
  context: Pick<Context, 'db'>,
  { sha256, size }: { readonly sha256: string; readonly size: number },
): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < size; ) {
    const bytes = await readContent(context, sha256, from);
    if (bytes === null) throw new Error(`the content ${sha256} is not stored completely`);
    yield bytes;
    from += bytes.length;
  }
}

/** Number of rows to delete per transaction. Small, so that other writes do not wait long. */
const atOnce = 64;
/** Milliseconds after which orphaned pieces cannot belong to an upload in progress. */
const graceMs = 24 * 3_600_000;

/** Deletes unused contents, and pieces that an interrupted upload left behind. */
export async function pruneContents(context: Pick<Context, 'db' | 'now'>): Promise<void> {
  const { db } = context;
  await deleteFilesOfRemovedModules(context);
  for (;;) {
    const rows = await db.all(unneededContents, { limit: atOnce });
    if (rows.length === 0) break;
    const hashes = rows.map(({ sha256 }) => sha256);
    const found = await db.all(contentsByHash, { hashes });
    // If a concurrent upload uses the same contents, it prevents the deletion, or stores the contents again.
    await db.write({ name: 'contents/prune', statements: [statement(deleteContents, { hashes })] });
    await dropUnused(context, found);
    if (rows.length < atOnce) break;
  }
  const below = encodeTime(Math.max(0, context.now() - graceMs), 10);
  for (;;) {
    const rows = await db.all(orphanPieces, { below, limit: atOnce });
    for (const { content_id, position } of rows)
      await db.write({
        name: 'contents/drop pieces',
        statements: [statement(deletePieces, { content_id, from: position, below: position + 1 })],
      });
    if (rows.length < atOnce) return;
  }
}

/** Deletes the files of modules that were removed, once no run and no operation needs them. */
async function deleteFilesOfRemovedModules({ db }: Pick<Context, 'db'>): Promise<void> {
  const removed = await db.all(removedWithFiles, {});
  if (removed.length === 0) return;
  const bases = (await db.all(basesOfOpenRuns, {})).map(({ basis }) => fromJson(basis) as { revisions: object });
  for (const { name } of removed) {
    if (bases.some(({ revisions }) => Object.hasOwn(revisions, name))) continue;
    // A name that contains a LIKE wildcard may also match other operations, which only delays the deletion.
    if (await db.get(openOperationWith, { pattern: `%${JSON.stringify(name)}%` })) continue;
    await db.write({ name: 'contents/removed modules', statements: [statement(deleteFilesOfRemoved, { name })] });
  }
}
