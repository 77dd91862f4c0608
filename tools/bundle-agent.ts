// Makes the agent's bundle where the sources have changed since the last one, and prints its path. The agent runs from
// it because stripping types costs a process 20 MB for as long as it lives.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Plugin } from 'esbuild';

const root = join(import.meta.dirname, '..');
const cache = join(root, '.cache', 'agent');
/** Bundles of other branches or versions that stay beside the newest. */
const kept = 3;

/** Everything that decides what the bundle is. */
function inputs(): string[] {
  const sources = ['agent/src', 'protocol/src'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => join(root, folder, name)),
  );
  const manifests = ['agent/package.json', 'protocol/package.json', 'package-lock.json'].map((name) =>
    join(root, name),
  );
  return [...sources, ...manifests, import.meta.filename].sort();
}

function hashOfInputs(): string {
  const hash = createHash('sha256').update(process.version);
  for (const file of inputs()) hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** Forty languages of error messages, of which the agent speaks one. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};

async function bundle(): Promise<string> {
  const { build } = await import('esbuild');
  const result = await build({
    entryPoints: [join(root, 'agent/src/main.ts')],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // Names stay, so that a stack trace can be read.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
    // Both of them native add-ons that `ws` can do without.
    define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    // The native part of the last is found beside it, and only where there is one.
    external: ['bufferutil', 'utf-8-validate', '@lydell/node-pty'],
    banner: { js: "import{createRequire as _cr}from'node:module';const require=_cr(import.meta.url);" },
    plugins: [englishOnly],
  });
  return result.outputFiles[0]!.text;
}

function forgetOld(): void {
  const bundles = readdirSync(cache).filter((name) => /^agent-[0-9a-f]+\.mjs$/.test(name));
  const withAge = bundles.map((name) => ({ name, age: -statSync(join(cache, name)).mtimeMs }));
  for (const { name } of withAge.sort((a, b) => a.age - b.age).slice(kept)) rmSync(join(cache, name), { force: true });
}

const path = join(cache, `agent-${hashOfInputs()}.mjs`);
/** @returns false: there is no place for it, a read-only clone or a full disk, and whoever starts was told */
async function made(): Promise<boolean> {
  if (existsSync(path)) return true;
  const content = await bundle();
  try {
    mkdirSync(cache, { recursive: true });
    const temporary = `${path}.${process.pid}.tmp`;
    writeFileSync(temporary, content);
    renameSync(temporary, path);
    forgetOld();
    return true;
  } catch (error) {
    console.error(`warning: the agent runs from its sources, with more memory: ${(error as Error).message}`);
    return false;
  }
}

// Its sources do the same: an agent that cannot start repairs nothing.
console.log((await made()) ? path : join(root, 'agent/src/main.ts'));
