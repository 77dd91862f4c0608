// Bundles each of Muster's programs into one file if the sources have changed since the last build, and prints the file
// to run. Without a bundle, a process strips types and looks up hundreds of files, which costs half a second of CPU
// time at startup and 20 MB of memory.
//
//   node tools/build/bundle.ts agent|orchestrator|cli
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { withoutSchemas } from '@muster/protocol/without-schemas';
import type { BuildOptions, Metafile, Plugin } from 'esbuild';
import { BuildCache, buildName } from './build-cache.ts';

const root = join(import.meta.dirname, '../..');
const cache = new BuildCache(join(root, '.cache', 'bundles'), 3);

/** Programs by name: main programs, worker threads, and rarely needed code. */
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

/** Returns the path of a native addon. */
export function addonFile(name: 'sqlite' | 'pty', platform: string = process.platform, arch: string = process.arch) {
  const path =
    name === 'sqlite'
      ? `better-sqlite3/prebuilds/${platform}-${arch}.node`
      : `@lydell/node-pty-${platform}-${arch}/pty.node`;
  return join(root, 'node_modules', path);
}

const workspaces = ['agent', 'cli', 'client', 'lib', 'orchestrator', 'protocol'];

/** Lists the files that affect the bundles. Must match the files that cli/bin/muster checks for changes. */
function inputs(): string[] {
  const sources = workspaces.flatMap((workspace) =>
    readdirSync(join(root, workspace, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => join(root, workspace, 'src', name)),
  );
  const manifests = [...workspaces.map((workspace) => `${workspace}/package.json`), 'package-lock.json'];
  return [...sources, ...manifests.map((name) => join(root, name)), import.meta.filename, starter].sort();
}

/** Omits Zod's error messages in languages other than English. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};

/** Protocol modules without schemas, by the entry point that exports them. */
const schemaless: Readonly<Record<string, readonly string[]>> = {
  '@muster/protocol': [
    'errors',
    'identity',
    'mapping',
    'operation/operation-status',
    'operation/stale-plan',
    'public-key',
    'visible',
  ],
  '@muster/protocol/http': ['http/definition/route'],
  '@muster/protocol/wire': [],
};
/** Parts of the CLI that need schemas: the descriptions of the `--json` output, and event validation. */
const needSchemas = /\/cli\/src\/(shapes\/|verbs\/fleet\/events\.ts$)/;

/** Bundles the CLI without the protocol's schemas, whose creation takes a quarter of the CPU time of a request. */
const schemas: Plugin = {
  name: 'schemas',
  setup(build) {
    build.onResolve({ filter: /^@muster\/protocol(\/http|\/wire)?$/ }, ({ path, importer }) =>
      /\/(cli|client)\/src\//.test(importer) && !needSchemas.test(importer) ? { path, namespace: 'schemaless' } : null,
    );
    build.onLoad({ filter: /./, namespace: 'schemaless' }, async ({ path }) => {
      const files = schemaless[path]!.map((name) => join(root, 'protocol/src', `${name}.ts`));
      const whole = await Promise.all(files.map(async (file) => [file, await import(file)] as const));
      return { contents: withoutSchemas(await import(path), Object.fromEntries(whole)), resolveDir: root };
    });
  },
};

/**
 * Bundles worker threads as separate files in the folder of the program that starts them. The banner defines
 * `musterThread`.
 */
const threads: Plugin = {
  name: 'threads',
  setup(build) {
    build.onLoad({ filter: /\/orchestrator\/src\/.*\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      if (!source.includes('import.meta.url')) return null;
      const contents = source.replace(/new URL\('\.\/([a-z-]+)\.ts', import\.meta\.url\)/g, (_, name: string) => {
        if (!Object.hasOwn(programs, name))
          throw new Error(`${path}: add the worker thread ${name} to the programs in tools/build/bundle.ts`);
        return `musterThread('${name}')`;
      });
      return { contents, loader: 'ts' };
    });
  },
};

/** Loads native addons with `musterAddon` from the banner, and rarely needed code from a separate file. */
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

/**
 * Loads `child_process` on demand. Commander needs it only for subcommands in separate files, which Muster does not
 * have.
 */
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
        throw new Error(`${path}: no import of child_process found; update the pattern in tools/build/bundle.ts`);
      return { contents, loader: 'js' };
    });
  },
};

/** Escapes `µ` in a cel-js pattern. esbuild escapes it only in strings, and the executable requires plain ASCII. */
const plainAscii: Plugin = {
  name: 'plain-ascii',
  setup(build) {
    build.onLoad({ filter: /@marcbachmann\/cel-js\/lib\/functions\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll('µ', '\\u00b5'),
      loader: 'js',
    }));
  },
};

// The executable defines `globalThis.muster`, because it contains all parts. Other installations load files instead.
const banner = `const musterThread = globalThis.muster?.thread ?? ((name) => new URL(name + '.cjs', require('node:url').pathToFileURL(__filename)));
const musterAddon = (name) => require(require('node:path').join(__dirname, '../../../node_modules', {
  sqlite: \`better-sqlite3/prebuilds/\${process.platform}-\${process.arch}.node\`,
  pty: \`@lydell/node-pty-\${process.platform}-\${process.arch}/pty.node\`,
}[name]));`;

/** The file that the launcher starts instead of a main program. Stores V8's code cache in the same folder. */
const cachedFile = (name: string) => `${name}-cached.cjs`;
const mainPrograms: readonly ProgramName[] = ['agent', 'orchestrator', 'cli'];
const starter = join(import.meta.dirname, 'start-cached.cjs');

/** Name without extension of the file with the parts of the CLI that most verbs do not need. */
export const cliRest = 'cli-rest';
/** Parts with more characters than this that are not needed at startup are in a separate file. */
const largePart = 64 * 1024;

/** File name of the list of packages whose code is in the programs. The file is in the folder of the programs. */
const packagesFile = 'packages.json';

function packagesIn(outputs: Metafile['outputs']): string[] {
  const files = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
  );
  const folders = files.map((file) => /^.*\/?node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(folders)].filter((folder) => folder !== undefined).sort();
}

/** Returns the folders of all packages whose code is in the programs, relative to the repository. */
export async function bundledPackages(): Promise<string[]> {
  return JSON.parse(readFileSync(join(await bundles(), packagesFile), 'utf8'));
}

const syntax = {
  platform: 'node',
  target: 'node24',
  // Preserves names, so that stack traces are readable.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
} as const;
const options = {
  ...syntax,
  absWorkingDir: root,
  bundle: true,
  metafile: true,
  // The CommonJS version resolves its parts at run time, which a bundle does not support.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  logLevel: 'warning',
  // `ws` works without its optional native addons.
  define: {
    'process.env.WS_NO_BUFFER_UTIL': '"1"',
    'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
    'import.meta.main': 'false',
  },
  // Optional native addons, without which their packages work.
  external: ['bufferutil', 'utf-8-validate', 'pg-native', 'cpu-features', '*.node'],
  plugins: [englishOnly, schemas, threads, apart, startsNothing, plainAscii],
} satisfies BuildOptions;
/** The only format that the single executable can run, and the fastest to start. */
const commonJs = { format: 'cjs', supported: { 'dynamic-import': false } } as const;

async function bundle(outdir: string): Promise<void> {
  const { build } = await import('esbuild');
  const { cli: _, ...others } = programs;
  const entryPoints = Object.entries(others).map(([out, path]) => ({
    out,
    in: path.endsWith('.ts') ? join(root, path) : path,
  }));
  const { metafile } = await build({
    ...options,
    ...commonJs,
    entryPoints,
    outdir,
    outExtension: { '.js': '.cjs' },
    banner: { js: banner },
  });
  const ofCli = await bundleCli(outdir);
  for (const name of mainPrograms) copyFileSync(starter, join(outdir, cachedFile(name)));
  const packages = packagesIn({ ...metafile.outputs, ...ofCli.outputs });
  writeFileSync(join(outdir, packagesFile), JSON.stringify(packages, null, 2));
}

/** Returns the names of the parts that a part imports when it starts, and of the parts that these import. */
function startedWith(entry: string, outputs: Metafile['outputs']): Set<string> {
  const files = new Map(Object.entries(outputs).map(([file, output]) => [basename(file), output]));
  const names = new Set([entry]);
  for (const name of names)
    for (const { path, kind } of files.get(name)?.imports ?? [])
      if (kind === 'import-statement') names.add(basename(path));
  return names;
}

/**
 * Bundles the CLI. Each part is a function, so that V8 compiles only the parts that are loaded at startup, and its code
 * cache does not contain the other parts. Large parts that are not needed at startup are in a second file, because reading
 * a megabyte takes a tenth of the CPU time of a request.
 */
async function bundleCli(outdir: string): Promise<Metafile> {
  const { build, transform } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    ...options,
    entryPoints: { entry: join(root, programs.cli) },
    outdir: root,
    format: 'esm',
    splitting: true,
    write: false,
  });
  const started = startedWith('entry.js', metafile.outputs);
  const parts: Record<typeof cliRest | 'cli', string[]> = { cli: [], [cliRest]: [] };
  for (const { path, text } of outputFiles) {
    const name = basename(path);
    const { code } = await transform(text, { ...syntax, ...commonJs });
    const file = code.length > largePart && !started.has(name) ? cliRest : 'cli';
    parts[file].push(`${JSON.stringify(`./${name}`)}(exports,module,require){${code.trim()}\n}`);
  }
  writeFileSync(join(outdir, `${cliRest}.cjs`), `module.exports={${parts[cliRest].join(',')}};\n`);
  writeFileSync(
    join(outdir, 'cli.cjs'),
    `const parts={${parts.cli.join(',')}};
const loaded={};
let rest;
const load=(name)=>{
if(!name.startsWith('./'))return require(name);
if(loaded[name]===undefined){
const module=loaded[name]={exports:{}};
const part=parts[name]??(rest??=require('./${cliRest}.cjs'))[name];
part(module.exports,module,load);
}
return loaded[name].exports;
};
load('./entry.js');
`,
  );
  return metafile;
}

/**
 * Builds the programs unless the cache contains a build of the current sources.
 * @returns the folder of the programs
 * @throws Error if they cannot be stored, as in a read-only clone or on a full disk
 */
export async function bundles(): Promise<string> {
  // Subtracts 100 ms from the time before the sources are read, so that a file that changes in the same clock tick
  // counts as newer.
  const asOf = new Date(Date.now() - 100);
  const name = buildName(root, inputs(), process.version);
  const { folder, created } = await cache.build(name, bundle);
  try {
    // A source file that changes after `asOf` is newer than the record.
    cache.setCurrent(name, asOf);
  } catch (error) {
    // A read-only clone may already contain all files.
    if (created) throw error;
  }
  return folder;
}

/**
 * Returns the bundle, or the source file if bundles cannot be stored, because the program must start even on a full
 * disk.
 */
async function programFile(name: ProgramName): Promise<string> {
  try {
    return join(await bundles(), mainPrograms.includes(name) ? cachedFile(name) : `${name}.cjs`);
  } catch (error) {
    console.error(
      `warning: cannot store the bundles; starting the ${name} from its sources, which uses more memory: ${(error as Error).message}`,
    );
    return join(root, programs[name]);
  }
}

if (import.meta.main) {
  const name = process.argv[2] as ProgramName;
  if (!Object.hasOwn(programs, name))
    throw new Error(`usage: node tools/build/bundle.ts ${Object.keys(programs).join('|')}`);
  console.log(await programFile(name));
}
