import { getAsset, getRawAsset } from 'node:sea';
import { Script } from 'node:vm';
import type { Build, Executable } from '@muster/protocol/executable';
import { loadAddon } from './addons.ts';

type Program = (
  exports: object,
  require: (name: string) => unknown,
  module: { exports: object },
  filename: string,
  dirname: string,
) => void;

/** Written beside the programs when they are put into the executable. */
export interface Contents {
  readonly build: Build;
  /** SHA-256 of each native part. */
  readonly addons: Readonly<Record<string, string>>;
  /** Programs with a code cache. */
  readonly compiled: readonly string[];
}

const contents: Contents = JSON.parse(getAsset('contents.json', 'utf8'));
const bytes = (asset: string): Buffer => Buffer.from(getRawAsset(asset) as ArrayBuffer);

function requireFromWithin(name: string): unknown {
  const inside = /^\.\/([a-z-]+)\.cjs$/.exec(name)?.[1];
  if (inside !== undefined) return run(inside);
  const builtin = process.getBuiltinModule(name);
  if (builtin !== undefined) return builtin;
  // Callers that ask like this treat the module as optional.
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
}

/** Reads a program and makes it ready to run. Compiled code that is not this engine's own is left aside by the engine. */
export function prepare(name: string): () => object {
  const cachedData = contents.compiled.includes(name) ? bytes(`${name}.code`) : undefined;
  // All of it is ASCII: so the text takes a byte a character, here and in the engine.
  const script = new Script(bytes(`${name}.cjs`).toString('latin1'), {
    filename: `muster:${name}`,
    ...(cachedData ? { cachedData } : {}),
  });
  return () => {
    const module = { exports: {} };
    (script.runInThisContext() as Program)(module.exports, requireFromWithin, module, process.execPath, '/');
    return module.exports;
  };
}

export const run = (name: string): object => prepare(name)();

/** Lets the programs know what carries them. */
export function announce(): void {
  const muster: Executable = {
    build: contents.build,
    addon: (name, directory) => {
      const sha256 = contents.addons[name];
      if (sha256 === undefined) throw new Error(`this executable carries no ${name}`);
      return loadAddon({ name, directory, sha256, content: () => bytes(`${name}.node`) });
    },
    console: (name) => bytes(`console/${name}`),
    thread: (name) => {
      const source = `globalThis.threadProgram = '${name}';${getAsset('thread.mjs', 'utf8')}`;
      return new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    },
  };
  Object.assign(globalThis, { muster });
}
