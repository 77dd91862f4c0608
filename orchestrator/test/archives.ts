import { gzipSync } from 'node:zlib';
import { type Headers, pack } from 'tar-stream';

/** Packs entries as an archive, including entries that only a malicious client sends. */
export async function archiveOf(
  entries: readonly (Partial<Headers> & { name: string; text?: string; pax?: Record<string, string> })[],
): Promise<Buffer> {
  const archive = pack();
  for (const { text = '', ...header } of entries) archive.entry({ mtime: new Date(0), ...header }, text);
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive) pieces.push(Buffer.from(piece as Uint8Array));
  return gzipSync(Buffer.concat(pieces));
}

/** Delivers bytes in small chunks, as a network does. */
export async function* inPieces(bytes: Uint8Array, size = 10_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
