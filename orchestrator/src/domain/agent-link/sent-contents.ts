import { reportedOperation } from '../../store/queries/operations/operations.ts';
import type { Payload } from '../modules/desired-set.ts';
import type { Payloads } from '../operations/payloads.ts';
import type { Context } from '../shared/context.ts';
import { pieceBytes, readContent } from '../shared/module-files.ts';
import type { AgentLinks } from './agent-link.ts';

/** Contents of files in module folders. Agents fetch the contents that an operation references. */

const sizesOf = new WeakMap<Payload, ReadonlyMap<string, number>>();

/**
 * Returns the contents that an agent may read for an operation; see `AgentLinks.contentsOf`. Contents may be
 * confidential, so an agent may read only those that its own operation references.
 */
async function contentsOfOperation(
  { db }: Pick<Context, 'db'>,
  payloads: Payloads,
  nodeId: string,
  operationId: string,
): Promise<ReadonlyMap<string, number> | null> {
  const row = await db.get(reportedOperation, { operation_id: operationId });
  if (row?.node_id !== nodeId) return null;
  if (row.status !== 'running' && !(row.status === 'queued' && row.dispatched_at !== null)) return null;
  // A drift check compares hashes and needs no contents.
  if (row.kind === 'drift' || row.payload_digest === null) return null;
  const payload = await payloads.setOf(row.payload_digest);
  if (payload === null) return null;
  const known = sizesOf.get(payload);
  if (known !== undefined) return known;
  const sizes = new Map(payload.resources.flatMap(({ source }) => (source ? [[source.sha256, source.size]] : [])));
  sizesOf.set(payload, sizes);
  return sizes;
}

/** Number of pieces to cache. All agents in a run read the same pieces. */
const keptPieces = 32;

/** Returns a function that reads contents. Concurrent reads of one piece share a query. */
function createContentReader(
  context: Pick<Context, 'db'>,
): (sha256: string, from: number) => Promise<Uint8Array | null> {
  const pieces = new Map<string, Promise<Uint8Array | null>>();
  return async (sha256, from) => {
    const start = from - (from % pieceBytes);
    const key = `${sha256}/${start}`;
    const piece = pieces.get(key) ?? readContent(context, sha256, start);
    // Moves the piece to the end. The first piece is the least recently used piece.
    pieces.delete(key);
    pieces.set(key, piece);
    if (pieces.size > keptPieces) pieces.delete(pieces.keys().next().value as string);
    try {
      const bytes = await piece;
      if (bytes === null) pieces.delete(key);
      return bytes === null || bytes.length <= from - start ? null : bytes.subarray(from - start);
    } catch (error) {
      pieces.delete(key);
      throw error;
    }
  };
}

export const createSentContents = (
  context: Pick<Context, 'db'>,
  payloads: Payloads,
): Pick<AgentLinks, 'contentsOf' | 'readContent'> => ({
  contentsOf: (nodeId, operationId) => contentsOfOperation(context, payloads, nodeId, operationId),
  readContent: createContentReader(context),
});
