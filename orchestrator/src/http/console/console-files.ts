import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { executable } from '@muster/protocol/executable';
import { z } from 'zod';

/**
 * The files of the built console, listed once at startup. Requests look up names in this table; names are never used as
 * paths.
 */
export interface ConsoleFiles {
  /** The HTML page before and after the nonce placeholder. */
  readonly page: readonly [string, string];
  /** First path segments of the console's pages. */
  readonly segments: readonly string[];
  /** Files by name, such as `assets/index-B1x2.js`. */
  readonly files: ReadonlyMap<string, ConsoleFile>;
}

export interface ConsoleFile {
  readonly type: string;
  /** SHA-256 of the uncompressed content, in hex. */
  readonly sha256: string;
  /** Available encodings besides the uncompressed content. */
  readonly encodings: readonly ConsoleEncoding[];
  content(encoding: ConsoleEncoding | null): Promise<Buffer> | Buffer;
}

const encodings = ['br', 'gzip'] as const;
export type ConsoleEncoding = (typeof encodings)[number];

/** Name of the listing that the console build writes into the folder (tools/build/build-console.ts). */
const listing = 'console.json';
const name = z.string().regex(/^(assets\/)?[A-Za-z0-9][A-Za-z0-9._-]*$/);
const listingSchema = z.strictObject({
  segments: z.array(z.string().regex(/^[a-z][a-z-]*$/)),
  files: z.array(
    z.strictObject({
      name,
      type: z.string(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      encodings: z.array(z.enum(encodings)),
    }),
  ),
});

/** Nonce placeholder in the page. */
const nonceMark = '%nonce%';
const pageName = 'index.html';

/** Returns the content of a file in the build. @param name relative to the build folder */
type Reader = (name: string) => Promise<Buffer> | Buffer;

/** Folders of a repository clone from which programs run: packages (Node), bundles, and sources. */
const cloneFolders = ['/node_modules/', '/.cache/bundles/', '/orchestrator/src/'];

/**
 * Reads the console from this process's executable, or from the clone from which it runs.
 * @param programs paths of Node and of the main script
 * @returns null in a clone without a built console
 * @throws Error if the build is incomplete
 */
export async function readConsoleFiles(programs: readonly string[]): Promise<ConsoleFiles | null> {
  const carried = executable();
  if (carried !== null) return await consoleFiles((file) => carried.console(file));
  for (const program of programs)
    for (const folder of cloneFolders.filter((part) => program.includes(part))) {
      const cache = join(program.split(folder)[0] as string, '.cache/console');
      // The file `current` contains the folder name of the newest build. Each build has its own folder, so that files
      // from two builds are never mixed.
      const current = await readFile(join(cache, 'current'), 'utf8').catch(() => null);
      if (current !== null) return await consoleFolder(join(cache, basename(current.trim())));
    }
  return null;
}

/** Returns the console in a folder. Files are read on first use, and cached. */
export const consoleFolder = (folder: string): Promise<ConsoleFiles> =>
  consoleFiles((file) => readFile(join(folder, file)));

async function consoleFiles(read: Reader): Promise<ConsoleFiles> {
  const { segments, files } = listingSchema.parse(JSON.parse((await read(listing)).toString()));
  const [before, after, more] = (await read(pageName)).toString().split(nonceMark);
  if (before === undefined || after === undefined || more !== undefined)
    throw new Error(`${pageName} of the console must contain exactly one ${nonceMark}`);
  return {
    page: [before, after],
    segments,
    files: new Map(files.map((file) => [file.name, { ...file, content: contentOf(file, read) }])),
  };
}

const suffixes: Readonly<Record<ConsoleEncoding, string>> = { br: '.br', gzip: '.gz' };

function contentOf(
  file: { name: string; encodings: readonly ConsoleEncoding[] },
  read: Reader,
): ConsoleFile['content'] {
  // Concurrent requests share one read, so that anonymous clients cannot cause many reads.
  const cache = new Map<ConsoleEncoding | null, Promise<Buffer>>();
  const keep = (encoding: ConsoleEncoding | null, made: Promise<Buffer>): Promise<Buffer> => {
    cache.set(encoding, made);
    made.catch(() => cache.delete(encoding));
    return made;
  };
  const content: ConsoleFile['content'] = (encoding) => {
    const found = cache.get(encoding);
    if (found !== undefined) return found;
    if (encoding === null && file.encodings.includes('gzip'))
      return keep(null, Promise.resolve(content('gzip')).then(promisify(gunzip)) as Promise<Buffer>);
    const stored = read(encoding === null ? file.name : file.name + suffixes[encoding]);
    return stored instanceof Promise ? keep(encoding, stored) : stored;
  };
  return content;
}
