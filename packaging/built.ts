import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Artifacts, artifactsIn, buildAll } from './build.ts';
import { buildPackages, packagesIn } from './deb/packages.ts';
import { describeBuild, executable } from './executable.ts';

/**
 * Artifacts of `npm run build` for tests: lightly compressed, and built once for each state of the sources. They include packages
 * of an older version for upgrade tests.
 */
export interface Built extends Artifacts {
  readonly older: Artifacts['debs'];
}

const here = import.meta.dirname;
const cache = join(here, '../.cache/built');
const olderVersion = '0.0.9';

/** Builds the artifacts unless the cache contains them. @returns paths in the cache, which are read-only */
export async function built(): Promise<Built> {
  const about = describeBuild({});
  const hash = createHash('sha256').update(basename(await executable(about)));
  const sources = readdirSync(here, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of [...sources, join(here, '../README.md'), join(here, '../LICENSE')].sort())
    hash.update(path.slice(here.length)).update('\0').update(readFileSync(path));
  const folder = join(cache, hash.digest('hex').slice(0, 16));
  mkdirSync(cache, { recursive: true });
  // Builds in a separate process. The lock makes concurrent callers wait for the same build.
  if (!existsSync(folder)) execFileSync('flock', [`${cache}.lock`, process.execPath, import.meta.filename, folder]);
  return { ...artifactsIn(folder, about), older: packagesIn(join(folder, 'older'), olderVersion, 'amd64') };
}

async function make(folder: string): Promise<void> {
  const building = `${folder}.tmp`;
  const { build } = await buildAll(building, { fast: true, env: {} });
  const options = { version: olderVersion, architecture: 'amd64', out: join(building, 'older') } as const;
  const epoch = Date.parse(build.date) / 1000;
  buildPackages({ ...options, executable: join(building, 'muster'), epoch, licences: '', compression: 'quick' });
  renameSync(building, folder);
  for (const name of readdirSync(cache)) if (name !== basename(folder)) rmSync(join(cache, name), { recursive: true });
}

if (import.meta.main) {
  const [, , folder = ''] = process.argv;
  if (!existsSync(folder)) await make(folder);
}
