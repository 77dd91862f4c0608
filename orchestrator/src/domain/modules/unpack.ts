import { Transform, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { MusterError } from '@muster/protocol';
import { filePathFault, folderLimits } from '@muster/protocol/module';
import { type Entry, extract, type Headers } from 'tar-stream';

/** A file in an archive, whose contents must be read before the next file. */
export interface ArchivedFile {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly executable: boolean;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * Maximum number of bytes in an archive in addition to file contents: headers, long names, padding, and the
 * end-of-archive marker.
 */
const overheadBytes = 64 * 1024 * 1024;
/** Maximum number of bytes between two files: headers with long names, which the library keeps in memory. */
const headerBytes = 1024 * 1024;

const refused = (message: string, path?: string): MusterError =>
  new MusterError('module_invalid', message, [{ path: path === undefined ? '' : `/${path}`, message }]);

/**
 * Reads the files of a gzip-compressed tar archive. As soon as it reads them, refuses entries other than regular files
 * and directories, names that are unsafe or that some file systems confuse, and entries that exceed the folder limits.
 * @param take reads the contents of each file to their end
 * @throws MusterError module_invalid, or the error of the source or of `take`
 */
export async function unpack(
  archive: AsyncIterable<Uint8Array>,
  take: (file: ArchivedFile) => Promise<void>,
): Promise<void> {
  const entries = extract();
  const bounds = new Bounds();
  const names = new Names();
  /** The first error, which causes the errors in the other streams. */
  let failure: unknown = null;
  const failed = (error: unknown): void => {
    failure ??= error;
    entries.destroy(failure as Error);
  };
  const read = async (entry: Entry): Promise<void> => {
    const { header } = entry;
    const path = names.add(header);
    const size = header.size ?? 0;
    const isDirectory = header.type === 'directory';
    bounds.entry(size, !isDirectory);
    if (isDirectory || path === null) entry.resume();
    else await take({ path, size, executable: ((header.mode ?? 0) & 0o100) !== 0, content: bytesOf(entry) });
  };
  const reading = async () => {
    for await (const entry of entries) await read(entry).catch(failed);
  };
  await Promise.all([
    pipeline(boundedIn(archive), createGunzip(), bounds, entries).catch(failed),
    reading().catch(failed),
  ]);
  if (failure === null) return;
  throw isDamaged(failure) ? refused('the archive is not complete, or not a gzip-compressed tar archive') : failure;
}

/** Limits the number of compressed bytes, because an archive of any size may decompress to nothing. */
async function* boundedIn(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const maximum = folderLimits.bytes + overheadBytes;
  let received = 0;
  for await (const bytes of archive) {
    received += bytes.length;
    if (received > maximum) throw refused(`the archive is larger than ${maximum / 1024 / 1024} MiB`);
    yield bytes;
  }
}

async function* bytesOf(entry: Entry): AsyncGenerator<Uint8Array> {
  const bytes = entry[Symbol.asyncIterator]();
  // Does not use `for await`: a reader that stops early would wait for the end of the entry, which never comes.
  for (let next = await bytes.next(); next.done !== true; next = await bytes.next()) yield next.value as Uint8Array;
}

/** Reports whether an error has a code of zlib, or a message of the tar library, for input that is not an archive. */
function isDamaged(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return code.startsWith('Z_') || /tar header|Unexpected end of data|Invalid tar/i.test(message);
}

/** Limits the files and the decompressed bytes before they reach the tar library. */
class Bounds extends Transform {
  #files = 0;
  #fileBytes = 0;
  #seen = 0;
  /** Position up to which the archive may continue without another file. */
  #allowed = headerBytes;

  /** Counts an entry. @throws MusterError module_invalid if the files exceed a limit */
  entry(size: number, isFile: boolean): void {
    this.#files += isFile ? 1 : 0;
    this.#fileBytes += size;
    if (this.#files > folderLimits.files) throw refused(`the archive has more than ${folderLimits.files} files`);
    if (!(size >= 0) || this.#fileBytes > folderLimits.bytes)
      throw refused(`the files in the archive exceed ${folderLimits.bytes / 1024 / 1024} MiB in total`);
    this.#allowed = this.#seen + size + headerBytes;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.#seen += chunk.length;
    if (this.#seen > this.#allowed || this.#seen > folderLimits.bytes + overheadBytes)
      done(refused('the archive has too much data between its files'));
    else done(null, chunk);
  }
}

/** Maximum length of a name in an archive, in characters. A name may begin with "./" and end with slashes. */
const longestName = 2 * folderLimits.pathBytes;

/** Checks the names in an archive. */
class Names {
  /** The kind of each name. The keys are the names in lower case, as on a file system that ignores case. */
  readonly #seen = new Map<string, { path: string; kind: 'file' | 'directory' }>();

  /** @returns the path; null for the top directory */
  add({ name, type }: Headers): string | null {
    // The code below takes quadratic time for a name that consists of slashes.
    if (name.length > longestName) throw refused(`the name ${JSON.stringify(name.slice(0, 200))}… is too long`);
    const path = name.replace(/^(\.\/)+/, '').replace(/\/+$/, '');
    const isDirectory = type === 'directory';
    if (isDirectory && (path === '' || path === '.')) return null;
    const fault = filePathFault(path);
    if (fault !== undefined) throw refused(`the name ${JSON.stringify(name.slice(0, 200))} ${fault}`);
    if (type !== 'file' && type !== 'contiguous-file' && !isDirectory)
      throw refused(`${path} is a ${type ?? 'special file'}; a module may contain only files and directories`);
    this.#note(path, isDirectory ? 'directory' : 'file');
    const parts = path.split('/');
    for (let length = 1; length < parts.length; length++) this.#note(parts.slice(0, length).join('/'), 'directory');
    return path;
  }

  #note(path: string, kind: 'file' | 'directory'): void {
    const folded = path.toUpperCase().toLowerCase().normalize('NFC');
    const earlier = this.#seen.get(folded);
    if (earlier === undefined) {
      // Limits the number of directories, because the limit on files does not include them.
      if (this.#seen.size > 4 * folderLimits.files) throw refused('the archive has too many directories');
      this.#seen.set(folded, { path, kind });
    } else if (earlier.path !== path)
      throw refused(`${path} and ${earlier.path} differ only in case, which some file systems ignore; rename one`);
    else if (earlier.kind !== kind || kind === 'file') throw refused(`${path} is in the archive twice`);
  }
}
