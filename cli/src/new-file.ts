import { open, rename, rm } from 'node:fs/promises';

/**
 * Writes a file that only its owner may read, whole or not at all: what was there before stays until the new one is done.
 * @returns its size
 */
export async function writeNewFile(path: string, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  const partial = `${path}.${process.pid}.part`;
  const file = await open(partial, 'wx', 0o600);
  let size = 0;
  try {
    for await (const piece of pieces) {
      await file.writeFile(piece);
      size += piece.length;
    }
    await file.sync();
    await file.close();
    await rename(partial, path);
    return size;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(partial, { force: true });
    throw error;
  }
}
