import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { executable } from '@muster/protocol/executable';
import { z } from 'zod';

/**
 * The console as it was built: a table that is read once, of names with what is sent for each. Nothing that is asked for
 * ever becomes a path.
 */
export interface ConsoleFiles {
  /** The page: text before and after the nonce of an answer. */
  readonly page: readonly [string, string];
  /** First segments of the addresses that the console has a page for. */
  readonly segments: readonly string[];
  /** By name, as `assets/index-B1x2.js`. */
  readonly files: ReadonlyMap<string, ConsoleFile>;
}

export interface ConsoleFile {
  /** Media type. */
  readonly type: string;
  /** Hex SHA-256 of it, unpacked. */
  readonly sha256: string;
  /** In which it is there, packed; empty: as it is. */
  readonly encodings: readonly ConsoleEncoding[];
  content(encoding: ConsoleEncoding | null): Promise<Buffer> | Buffer;
}

const encodings = ['br', 'gzip'] as const;
export type ConsoleEncoding = (typeof encodings)[number];

/** Written beside the files when the console is built (tools/build/build-console.ts). */
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

/** What stands in the page where the nonce of each answer goes. */
const nonceMark = '%nonce%';
const pageName = 'index.html';

/** Gives the content of a file of the build by its name there. */
type Reader = (name: string) => Promise<Buffer> | Buffer;

/** Where in a clone programs run from: Node of its packages, a bundle, the sources. */
const placesInClone = ['/node_modules/', '/.cache/bundles/', '/orchestrator/src/'];

/**
 * Reads the table: from the executable that this process is, else from the clone that it runs from.
 * @param programs the files that this process runs from: Node, and what it runs
 * @returns null in a clone in which the console was not built
 * @throws Error when what was built is not whole
 */
export async function readConsoleFiles(programs: readonly string[]): Promise<ConsoleFiles | null> {
  const carried = executable();
  if (carried !== null) return await consoleFiles((file) => carried.console(file));
  for (const program of programs)
    for (const place of placesInClone.filter((part) => program.includes(part))) {
      const cache = join(program.split(place)[0] as string, '.cache/console');
      // A name, so that nobody falls between two builds.
      const current = await readFile(join(cache, 'current'), 'utf8').catch(() => null);
      if (current !== null) return await consoleFolder(join(cache, basename(current.trim())));
    }
  return null;
}

/** The table of a folder. Its files are read when somebody first asks for them, and kept. */
export const consoleFolder = (folder: string): Promise<ConsoleFiles> =>
  consoleFiles((file) => readFile(join(folder, file)));

async function consoleFiles(read: Reader): Promise<ConsoleFiles> {
  const { segments, files } = listingSchema.parse(JSON.parse((await read(listing)).toString()));
  const [before, after, more] = (await read(pageName)).toString().split(nonceMark);
  if (before === undefined || after === undefined || more !== undefined)
    throw new Error(`${pageName} of the console must have one ${nonceMark}`);
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
  // What is read is one for all who ask, also at one time: strangers do.
  const kept = new Map<ConsoleEncoding | null, Promise<Buffer>>();
  const keep = (encoding: ConsoleEncoding | null, made: Promise<Buffer>): Promise<Buffer> => {
    kept.set(encoding, made);
    made.catch(() => kept.delete(encoding));
    return made;
  };
  const content: ConsoleFile['content'] = (encoding) => {
    const found = kept.get(encoding);
    if (found !== undefined) return found;
    if (encoding === null && file.encodings.includes('gzip'))
      return keep(null, Promise.resolve(content('gzip')).then(promisify(gunzip)) as Promise<Buffer>);
    const stored = read(encoding === null ? file.name : file.name + suffixes[encoding]);
    return stored instanceof Promise ? keep(encoding, stored) : stored;
  };
  return content;
}
