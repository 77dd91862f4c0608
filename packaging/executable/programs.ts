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

export interface Contents {
  readonly build: Build;
  /** SHA-256 of each native addon. */
  readonly addons: Readonly<Record<string, string>>;
  /** Names of the programs that have a code cache. */
  readonly compiled: readonly string[];
}

const contents: Contents = JSON.parse(getAsset('contents.json', 'utf8'));
const bytes = (asset: string): Buffer => Buffer.from(getRawAsset(asset) as ArrayBuffer);

function requireFromWithin(name: string): unknown {
  const inside = /^\.\/([a-z-]+)\.cjs$/.exec(name)?.[1];
  if (inside !== undefined) return run(inside);
  const builtin = process.getBuiltinModule(name);
  if (builtin !== undefined) return builtin;
  // The error code that callers of optional modules check for.
  throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
}

/** Loads a program. V8 ignores a code cache from another V8 version. @returns a function that runs the program */
export function prepare(name: string): () => object {
  const cachedData = contents.compiled.includes(name) ? bytes(`${name}.code`) : undefined;
  // The program is ASCII, and V8 stores a Latin-1 string with one byte per character.
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

/** Sets `globalThis.muster`, through which programs access the contents of the executable. */
export function announce(): void {
  const muster: Executable = {
    build: contents.build,
    addon: (name, directory) => {
      const sha256 = contents.addons[name];
      if (sha256 === undefined) throw new Error(`this executable does not contain the addon ${name}`);
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
