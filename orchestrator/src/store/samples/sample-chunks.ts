/**
 * Samples lie in chunks, a table for each slice of time, so that what is too old goes by dropping a table instead of by
 * deleting rows. Which slices there are is decided here; the databases only make and drop them.
 */

/** From `start` up to, and not with, `end`; Unix seconds. */
export interface Chunk {
  readonly start: number;
  readonly end: number;
}

const shortestSecs = 600;
/** So much more than asked is kept at most: a chunk goes when all of it is too old. */
const chunksOfRetention = 24;

/** How long a new chunk is, in seconds. */
export const chunkLength = (retentionSecs: number): number =>
  Math.max(shortestSecs, Math.ceil(retentionSecs / chunksOfRetention / 60) * 60);

/**
 * The chunk that a time belongs to: one there is, or a new one. A new one fills a gap where those around it were made
 * with another length.
 * @param chunks that do not overlap, in their order
 */
export function chunkAt(chunks: readonly Chunk[], at: number, length: number): Chunk {
  let start = Math.floor(at / length) * length;
  let end = start + length;
  for (const chunk of chunks) {
    if (chunk.start <= at && at < chunk.end) return chunk;
    if (chunk.end <= at) start = Math.max(start, chunk.end);
    else end = Math.min(end, chunk.start);
  }
  return { start, end };
}

/** Chunks that hold nothing from `since` on. */
export const chunksBefore = (chunks: readonly Chunk[], since: number): Chunk[] =>
  chunks.filter(({ end }) => end <= since);

/** Adds a chunk in its place. */
export const withChunk = (chunks: readonly Chunk[], chunk: Chunk): Chunk[] =>
  [...chunks, chunk].sort((one, other) => one.start - other.start);

export const tableOf = ({ start, end }: Chunk): string => `samples_${start}_${end}`;

/** The chunks among the names of tables, in their order. */
export function chunksOf(tables: readonly string[]): Chunk[] {
  return tables
    .map((name) => /^samples_(\d{1,15})_(\d{1,15})$/.exec(name))
    .filter((match) => match !== null)
    .map(([, start, end]) => ({ start: Number(start), end: Number(end) }))
    .sort((one, other) => one.start - other.start);
}
