import { isUtf8 } from 'node:buffer';
import {
  folderLimits,
  type ModuleFile,
  type ModuleFiles,
  type ModuleFolder,
  templateFilesOf,
} from '@muster/protocol/module';
import type { Database } from '../../store/database.ts';
import { contentPiece, moduleFiles, writtenPiece } from '../../store/queries/contents.ts';

/** Reads the files in the folders of stored modules. */

type Store = { readonly db: Pick<Database, 'all' | 'get'> };

/** Size of a piece in bytes. One piece at a time is read into memory. */
export const pieceBytes = 256 * 1024;
export interface WrittenContent {
  readonly sha256: string;
  readonly size: number;
  readonly content_id: string;
}

/**
 * Returns the bytes of a file's contents from an offset up to the end of the piece.
 * @returns null if the contents are not stored, or the offset is at or after their end
 */
export async function readContent({ db }: Store, sha256: string, from: number): Promise<Uint8Array | null> {
  const row = await db.get(contentPiece, { sha256, position: Math.floor(from / pieceBytes) });
  const bytes = row?.bytes.subarray(from % pieceBytes);
  return bytes === undefined || bytes.length === 0 ? null : bytes;
}

/** Returns the first piece of contents that were written but may not be visible yet; null if there is none. */
async function firstPiece({ db }: Store, { content_id }: WrittenContent) {
  return (await db.get(writtenPiece, { content_id, position: 0 }))?.bytes ?? null;
}

/** Returns the files of a revision; an empty map if the module is not a folder. */
export async function filesOfRevision({ db }: Store, name: string, revision: number): Promise<ModuleFiles> {
  const rows = await db.all(moduleFiles, { name, revision });
  return new Map(
    rows.map(({ path, sha256, size, executable }) => [path, moduleFile(path, sha256, size, executable === 1)]),
  );
}

export const moduleFile = (path: string, sha256: string, size: number, executable: boolean): ModuleFile => ({
  path,
  sha256,
  size,
  executable,
});

/**
 * Returns a module's folder with the contents of its templates, for `parseModule`.
 * @param written contents that are not visible yet
 */
export async function folderOf(
  context: Store,
  content: string,
  files: ModuleFiles,
  written: readonly WrittenContent[] = [],
): Promise<ModuleFolder> {
  const texts = new Map<string, string>();
  let left: number = folderLimits.templatesBytes;
  for (const path of templateFilesOf(content, files)) {
    const found = files.get(path);
    if (found === undefined || found.size > folderLimits.templateBytes) continue;
    // Skips the remaining templates, because the module will be refused for the total size of its templates.
    left -= found.size;
    if (left < 0) break;
    // A template fits into one piece.
    const unseen = written.find(({ sha256 }) => sha256 === found.sha256);
    const bytes =
      found.size === 0
        ? new Uint8Array()
        : unseen === undefined
          ? await readContent(context, found.sha256, 0)
          : await firstPiece(context, unseen);
    if (bytes !== null && isUtf8(bytes)) texts.set(path, Buffer.from(bytes).toString('utf8'));
  }
  return { files, textOf: (path) => texts.get(path) ?? null };
}
