/**
 * Samples are stored in chunks, one table per time range, so that old samples are removed by dropping a table. This
 * file computes the ranges; the sample stores create and drop the tables.
 */

/** A time range from `start` to just before `end`, in Unix seconds. */
export interface Chunk {
  readonly start: number;
  readonly end: number;
}

const shortestSecs = 600;
/**
 * Number of chunks per retention period. A chunk is dropped after its last sample has expired, so samples may be stored
 * for up to 1/24 longer than the retention period.
 */
const chunksOfRetention = 24;

/** Returns the length of a new chunk in seconds. */
export const chunkLength = (retentionSecs: number): number =>
  Math.max(shortestSecs, Math.ceil(retentionSecs / chunksOfRetention / 60) * 60);

/**
 * @returns the existing chunk that contains a time, or a new chunk that fits between existing chunks of other lengths
 * @param chunks existing chunks, in order and without overlap
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

/** @returns the chunks that end before `since` */
export const chunksBefore = (chunks: readonly Chunk[], since: number): Chunk[] =>
  chunks.filter(({ end }) => end <= since);

export const withChunk = (chunks: readonly Chunk[], chunk: Chunk): Chunk[] =>
  [...chunks, chunk].sort((one, other) => one.start - other.start);

export const tableOf = ({ start, end }: Chunk): string => `samples_${start}_${end}`;

/** @returns the chunks among these table names, in order */
export function chunksOf(tables: readonly string[]): Chunk[] {
  return tables
    .map((name) => /^samples_(\d{1,15})_(\d{1,15})$/.exec(name))
    .filter((match) => match !== null)
    .map(([, start, end]) => ({ start: Number(start), end: Number(end) }))
    .sort((one, other) => one.start - other.start);
}
