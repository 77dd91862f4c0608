// Makes the programs of Muster in one file each, where the sources have changed since they were made last, and prints
// what to run for the part that is named: node tools/build/bundle.ts agent|orchestrator|cli. Stripping types and looking for
// hundreds of files costs a process half a second of work at its start, and 20 MB for as long as it lives.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import type { Metafile, Plugin } from 'esbuild';

const root = join(import.meta.dirname, '../..');
/** Holds a folder of programs for each state of the sources, and `current`: the name of the newest. */
const cache = join(root, '.cache', 'bundles');
/** Bundles of other branches or versions that stay beside the newest. */
const kept = 3;

/** Programs by name: a part of Muster, a thread of a part, or a piece that few processes need. */
export const programs = {
  agent: 'agent/src/main.ts',
  orchestrator: 'orchestrator/src/main.ts',
  cli: 'cli/src/main.ts',
  'sqlite-writer': 'orchestrator/src/store/sqlite/sqlite-writer.ts',
  'samples-sqlite-writer': 'orchestrator/src/store/samples/samples-sqlite-writer.ts',
  'screen-worker': 'orchestrator/src/screen/screen-worker.ts',
  'api-reference': '@scalar/fastify-api-reference',
} as const;
export type ProgramName = keyof typeof programs;

/** Native parts, by the name that bundles ask for: where their file is. */
export function addonFile(name: 'sqlite' | 'pty', platform: string = process.platform, arch: string = process.arch) {
  const path =
    name === 'sqlite'
      ? `better-sqlite3/prebuilds/${platform}-${arch}.node`
      : `@lydell/node-pty-${platform}-${arch}/pty.node`;
  return join(root, 'node_modules', path);
}

const workspaces = ['agent', 'cli', 'client', 'lib', 'orchestrator', 'protocol'];

/** All inputs that affect the bundles. cli/bin/muster checks whether one of these has changed, so keep both lists equal. */
function inputs(): string[] {
  const sources = workspaces.flatMap((workspace) =>
    readdirSync(join(root, workspace, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => join(root, workspace, 'src', name)),
  );
  const manifests = [...workspaces.map((workspace) => `${workspace}/package.json`), 'package-lock.json'];
  return [...sources, ...manifests.map((name) => join(root, name)), import.meta.filename].sort();
}

function hashOfInputs(): string {
  const hash = createHash('sha256').update(process.version);
  for (const file of inputs()) hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** Forty languages of error messages, of which Muster speaks one. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};

/** Threads are files beside the one that starts them; `musterThread` is in the banner. */
const threads: Plugin = {
  name: 'threads',
  setup(build) {
    build.onLoad({ filter: /\/orchestrator\/src\/.*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      if (!source.includes('import.meta.url')) return null;
      const contents = source.replace(/new URL\('\.\/([a-z-]+)\.ts', import\.meta\.url\)/g, (_, name: string) => {
        if (!Object.hasOwn(programs, name))
          throw new Error(`${path}: ${name} is a thread that tools/build/bundle.ts lacks`);
        return `musterThread('${name}')`;
      });
      return { contents, loader: 'ts' };
    });
  },
};

/** Native parts are where `musterAddon` of the banner says; what few processes need is a file of its own. */
const apart: Plugin = {
  name: 'apart',
  setup(build) {
    const virtual = (filter: RegExp, contents: string) =>
      build.onLoad({ filter }, () => ({ contents, loader: 'js' as const }));
    virtual(/better-sqlite3\/lib\/binding\.js$/, "exports.getBinding = (given) => given ?? musterAddon('sqlite');");
    virtual(/@lydell\/node-pty\/requireBinary\.js$/, "exports.requireBinary = () => musterAddon('pty');");
    build.onResolve({ filter: /^@scalar\/fastify-api-reference$/ }, ({ kind }) =>
      kind === 'entry-point' ? null : { path: './api-reference.cjs', external: true },
    );
  },
};

/** Defers the code with which commander starts subcommands that are files: Muster has none. */
const startsNothing: Plugin = {
  name: 'starts-nothing',
  setup(build) {
    build.onLoad({ filter: /\/commander\/lib\/command\.js$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const contents = source.replace(
        /^(import childProcess from|const childProcess = require\()\s*'node:child_process'\)?;$/m,
        "const childProcess = { spawn: (...words) => require('node:child_process').spawn(...words) };",
      );
      if (contents === source)
        throw new Error(`${path} starts programs in another way than tools/build/bundle.ts knows`);
      return { contents, loader: 'js' };
    });
  },
};

// In the executable, which has all of it in itself, `muster` is there; elsewhere there are files.
const banner = `const musterThread = globalThis.muster?.thread ?? ((name) => new URL(name + '.cjs', require('node:url').pathToFileURL(__filename)));
const musterAddon = (name) => require(require('node:path').join(__dirname, '../../../node_modules', {
  sqlite: \`better-sqlite3/prebuilds/\${process.platform}-\${process.arch}.node\`,
  pty: \`@lydell/node-pty-\${process.platform}-\${process.arch}/pty.node\`,
}[name]));`;

/**
 * Started by the launcher for a verb. Loads the V8 code cache beside it, which saves two thirds of the start time. If the
 * cache cannot be stored, as in a read-only clone, Node compiles. Long-running programs start once and have no cache.
 */
const cachedFile = 'cli-cached.cjs';
const cached = "require('node:module').enableCompileCache(__dirname + '/compiled');require('./cli.cjs');\n";

/** Beside the programs: the packages whose code is in them. */
const packagesFile = 'packages.json';

/** Folders of packages that something of is in the programs. */
function packagesIn({ outputs }: Metafile): string[] {
  const files = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
  const folders = files.map((file) => /^.*\/?node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(folders)].filter((folder) => folder !== undefined).sort();
}

/** @returns folders, relative to the repository, of the packages whose code is in the programs */
export async function bundledPackages(): Promise<string[]> {
  return JSON.parse(readFileSync(join(await bundles(), packagesFile), 'utf8'));
}

async function bundle(outdir: string): Promise<void> {
  const { build } = await import('esbuild');
  const entryPoints = Object.entries(programs).map(([out, path]) => ({
    out,
    in: path.endsWith('.ts') ? join(root, path) : path,
  }));
  const { metafile } = await build({
    entryPoints,
    absWorkingDir: root,
    outdir,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    metafile: true,
    platform: 'node',
    // Its other form looks for its parts while it runs.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    target: 'node24',
    // The format that the single executable can run, and the fastest to start.
    format: 'cjs',
    supported: { 'dynamic-import': false },
    // Names stay, so that a stack trace can be read.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'warning',
    // Of `ws`, which does without as well.
    define: {
      'process.env.WS_NO_BUFFER_UTIL': '"1"',
      'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
      'import.meta.main': 'false',
    },
    // Native parts that their users do without.
    external: ['bufferutil', 'utf-8-validate', 'pg-native', 'cpu-features', '*.node'],
    banner: { js: banner },
    plugins: [englishOnly, threads, apart, startsNothing],
  });
  writeFileSync(join(outdir, cachedFile), cached);
  writeFileSync(join(outdir, packagesFile), JSON.stringify(packagesIn(metafile), null, 2));
}

function forgetOld(newest: string): void {
  const folders = readdirSync(cache).filter((name) => /^[0-9a-f]{16}$/.test(name) && name !== newest);
  const withAge = folders.map((name) => ({ name, age: -statSync(join(cache, name)).mtimeMs }));
  for (const { name } of withAge.sort((a, b) => a.age - b.age).slice(kept))
    rmSync(join(cache, name), { recursive: true, force: true });
}

/** Says which is the newest, as of a time: what changes later is newer than this file. */
function pointTo(name: string, time: Date): void {
  const temporary = join(cache, `current.${process.pid}.tmp`);
  writeFileSync(temporary, `${name}\n`);
  utimesSync(temporary, time, time);
  renameSync(temporary, join(cache, 'current'));
}

/**
 * Makes them unless they are there.
 * @returns the folder that has them
 * @throws Error when there is no place for them, a read-only clone or a full disk
 */
export async function bundles(): Promise<string> {
  // A little before the sources are read: a file that changes in the same tick of the clock must count as newer.
  const asOf = new Date(Date.now() - 100);
  const name = hashOfInputs();
  const folder = join(cache, name);
  if (existsSync(folder)) {
    // Only if necessary: a read-only clone may already have all files.
    try {
      pointTo(name, asOf);
    } catch {}
    return folder;
  }
  mkdirSync(cache, { recursive: true });
  const temporary = mkdtempSync(join(cache, 'tmp-'));
  try {
    await bundle(temporary);
    // Others than who made it may run it.
    chmodSync(temporary, 0o755);
    try {
      renameSync(temporary, folder);
    } catch (error) {
      // Somebody else was faster.
      if (!existsSync(folder)) throw error;
    }
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  pointTo(name, asOf);
  forgetOld(name);
  return folder;
}

/** @returns the file to run; its sources where there is no place for bundles: what cannot start repairs nothing */
async function programFile(name: ProgramName): Promise<string> {
  try {
    return join(await bundles(), `${name}.cjs`);
  } catch (error) {
    console.error(`warning: the ${name} runs from its sources, with more memory: ${(error as Error).message}`);
    return join(root, programs[name]);
  }
}

if (import.meta.main) {
  const name = process.argv[2] as ProgramName;
  if (!Object.hasOwn(programs, name))
    throw new Error(`usage: node tools/build/bundle.ts ${Object.keys(programs).join('|')}`);
  console.log(await programFile(name));
}
