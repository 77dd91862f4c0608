import { isUtf8 } from 'node:buffer';
import { MusterError } from '@muster/protocol';
import { type ModuleFile, type ModuleFiles, moduleFileName, moduleLimits } from '@muster/protocol/module';
import type { Context } from '../shared/context.ts';
import { moduleFile, type WrittenContent } from '../shared/module-files.ts';
import { writeContent } from './contents.ts';
import { type ArchivedFile, unpack } from './unpack.ts';

/** The other files in a module's folder, read from an archive or from a stored revision. */

export interface UnpackedFolder {
  /** The text of `module.yml`. */
  readonly content: string;
  readonly files: ModuleFiles;
  readonly written: readonly WrittenContent[];
}

/**
 * Reads the archive of a module's folder, and writes the contents of its files, which become visible with the revision.
 * @param written receives the contents of each written file, even if the archive is refused
 * @throws MusterError module_invalid, storage_full
 */
export async function readArchive(
  context: Pick<Context, 'db' | 'newId'>,
  archive: AsyncIterable<Uint8Array>,
  written: WrittenContent[],
  requireSpace: () => void,
): Promise<UnpackedFolder> {
  const checkSpace = spaceChecker(requireSpace);
  const files = new Map<string, ModuleFile>();
  let content: string | null = null;
  await unpack(archive, async (entry) => {
    if (entry.path === moduleFileName) {
      content = await textOf(entry);
      return;
    }
    const stored = await writeContent(context, checkSpace(entry.content));
    written.push(stored);
    files.set(entry.path, moduleFile(entry.path, stored.sha256, stored.size, entry.executable));
  });
  if (content === null) {
    const nested = [...files.keys()].find((path) => path.endsWith(`/${moduleFileName}`));
    const hint = nested === undefined ? '' : `; it is at ${nested}: pack the content of that folder`;
    const message = `the archive has no ${moduleFileName} at its top${hint}`;
    throw new MusterError('module_invalid', message, [{ path: '', message }]);
  }
  return { content, files, written };
}

/** Number of bytes between checks of the free space. */
const checkEvery = 1024 * 1024;

/** Returns a function that passes contents through, and checks the free space after each MiB in total. */
function spaceChecker(requireSpace: () => void) {
  let unchecked = checkEvery;
  return async function* checked(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const bytes of content) {
      unchecked += bytes.length;
      if (unchecked >= checkEvery) {
        requireSpace();
        unchecked = 0;
      }
      yield bytes;
    }
  };
}

async function textOf({ size, content }: ArchivedFile): Promise<string> {
  if (size > moduleLimits.bytes)
    throw new MusterError('body_too_large', `${moduleFileName} can have at most ${moduleLimits.bytes} bytes`);
  const pieces: Uint8Array[] = [];
  for await (const bytes of content) pieces.push(bytes);
  const bytes = Buffer.concat(pieces);
  if (!isUtf8(bytes))
    throw new MusterError('module_invalid', `${moduleFileName} is not UTF-8`, [
      { path: '', message: `${moduleFileName} must be UTF-8` },
    ]);
  return bytes.toString('utf8');
}
