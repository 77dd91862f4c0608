// Builds the console if its sources have changed since the last build. The orchestrator in this clone, the executable,
// and the tests use the output.
//
//   node tools/build/build-console.ts
import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { BuildCache, buildName } from './build-cache.ts';

const root = join(import.meta.dirname, '../..');
const sources = join(root, 'console');
const cache = new BuildCache(join(root, '.cache', 'console'), 2);
/**
 * File name of the list of served files, in the same folder. orchestrator/src/http/console/console-files.ts reads it.
 */
const listing = 'console.json';
/** File name of the list of packages whose code is in the console. Their licenses must be included. */
export const packagesFile = 'packages.json';
const pageName = 'index.html';

/** Content types of the served files, by extension. Files with other extensions are not served. */
const types: Readonly<Record<string, { type: string; packed: boolean }>> = {
  '.js': { type: 'text/javascript; charset=utf-8', packed: true },
  '.css': { type: 'text/css; charset=utf-8', packed: true },
  '.svg': { type: 'image/svg+xml', packed: true },
  '.json': { type: 'application/json', packed: true },
  '.txt': { type: 'text/plain; charset=utf-8', packed: true },
  '.webmanifest': { type: 'application/manifest+json', packed: true },
  '.png': { type: 'image/png', packed: false },
  '.ico': { type: 'image/vnd.microsoft.icon', packed: false },
  '.woff2': { type: 'font/woff2', packed: false },
};
/** Minimum size of a compressed file in bytes. A smaller file fits into one packet without compression. */
const packedFrom = 1024;

function inputs(): string[] {
  const below = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/\.test\.tsx?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));
  const own = readdirSync(sources, { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist'].includes(name) && !name.startsWith('.'))
    .flatMap((entry) => (entry.isDirectory() ? below(join(sources, entry.name)) : [join(sources, entry.name)]));
  const libraries = ['client', 'protocol'];
  const others = [...libraries.map((name) => `${name}/package.json`), 'package-lock.json', 'tsconfig.json'].map(
    (name) => join(root, name),
  );
  return [
    ...own,
    ...libraries.flatMap((name) => below(join(root, name, 'src'))),
    ...others,
    import.meta.filename,
  ].sort();
}

/**
 * Returns the first path segments of all console pages.
 * @param routes text of the module that defines all routes
 * @throws Error if the text contains no routes
 */
export function segmentsOf(routes: string): string[] {
  const found = [...routes.matchAll(/\bpage\(\s*'\/([^/']+)/g)].map(([, segment]) => segment as string);
  if (found.length === 0)
    throw new Error(
      "console/src/app/routes.tsx contains no call page('/…'); update the pattern in tools/build/build-console.ts",
    );
  return [...new Set(found)].sort();
}

interface ListedFile {
  name: string;
  type: string;
  sha256: string;
  encodings: string[];
}

/** Describes a file in the build. Replaces a compressible file with its `.br` and `.gz` versions. */
async function list(folder: string, name: string): Promise<ListedFile> {
  const known = types[extname(name)];
  if (known === undefined)
    throw new Error(`${name}: add a media type for ${extname(name)} to tools/build/build-console.ts`);
  const content = readFileSync(join(folder, name));
  const file = { name, type: known.type, sha256: hash('sha256', content) };
  if (!known.packed || content.length < packedFrom) return { ...file, encodings: [] };
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(content, { params }),
    promisify(gzip)(content, { level: 9 }),
  ]);
  writeFileSync(join(folder, `${name}.br`), br);
  writeFileSync(join(folder, `${name}.gz`), gz);
  rmSync(join(folder, name));
  return { ...file, encodings: ['br', 'gzip'] };
}

/** The bundler function that this file uses. */
interface Bundler {
  build(config: object): Promise<unknown>;
}
interface Chunk {
  readonly type: 'chunk' | 'asset';
  readonly modules?: Readonly<Record<string, { renderedLength: number }>>;
  readonly originalFileNames?: readonly string[];
}

async function make(folder: string): Promise<void> {
  const { build } = (await import(createRequire(join(sources, 'package.json')).resolve('vite'))) as Bundler;
  // Listed explicitly, because Tailwind generates its code and the bundle does not list it as a module.
  const packages = new Set(['node_modules/tailwindcss']);
  const take = (file: string): void => {
    const found = /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file.replace(/^\0/, ''))?.[0];
    if (found !== undefined) packages.add(relative(root, found));
  };
  const collector = {
    name: 'muster-packages',
    generateBundle(_: unknown, bundle: Readonly<Record<string, Chunk>>) {
      for (const { modules = {}, originalFileNames = [] } of Object.values(bundle)) {
        for (const [id, { renderedLength }] of Object.entries(modules))
          if (renderedLength > 0 || /\.css($|\?)/.test(id)) take(id);
        for (const name of originalFileNames) take(join(sources, name));
      }
    },
  };
  await build({
    root: sources,
    configFile: join(sources, 'vite.config.ts'),
    configLoader: 'native',
    mode: 'production',
    logLevel: 'warn',
    plugins: [collector],
    build: { outDir: folder, emptyOutDir: true, manifest: false, sourcemap: false, reportCompressedSize: false },
  });
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((name) => name !== pageName)
    .sort();
  const files = await Promise.all(names.map((name) => list(folder, name)));
  const segments = segmentsOf(readFileSync(join(sources, 'src/app/routes.tsx'), 'utf8'));
  writeFileSync(join(folder, listing), JSON.stringify({ segments, files }, null, 1));
  writeFileSync(join(folder, packagesFile), JSON.stringify([...packages].sort(), null, 1));
}

/** Builds in a separate process with NODE_ENV=production, because a test runner sets another value. */
function makeApart(folder: string): Promise<void> {
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(process.execPath, [import.meta.filename, folder], { cwd: root, env, stdio: 'pipe' });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => said.push(piece));
  child.stdin.end();
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`cannot build the console:\n${withoutStacks(Buffer.concat(said).toString())}`));
    });
  });
}

const withoutStacks = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line !== '' && !/^ +at |^node:|^Node\.js v/.test(line))
    .join('\n');

/**
 * Builds the console unless the cache contains a build of the current sources.
 * @param begin called before a build, which takes seconds
 * @returns the folder of the build
 * @throws Error if the build fails or cannot be stored
 */
export async function builtConsole(begin: () => void = () => {}): Promise<string> {
  const name = buildName(root, inputs());
  const { folder } = await cache.build(name, (temporary) => {
    begin();
    return makeApart(temporary);
  });
  if (cache.current() !== name) cache.setCurrent(name);
  return folder;
}

/** Returns the folders of all packages whose code is in the console, relative to the repository. */
export async function consolePackages(): Promise<string[]> {
  return JSON.parse(readFileSync(join(await builtConsole(), packagesFile), 'utf8'));
}

if (import.meta.main) {
  const [, , folder] = process.argv;
  if (folder === undefined) console.log(await builtConsole());
  else await make(folder);
}
