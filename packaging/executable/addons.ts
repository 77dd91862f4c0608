import { hash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { stepsTo, unguarded } from './addon-places.ts';

export interface CarriedAddon {
  readonly name: string;
  /**
   * The addon is extracted to the folder `addons` of this directory if this user owns the directory, and otherwise to
   * the cache.
   */
  readonly directory: string;
  readonly sha256: string;
  content(): Buffer;
}

/** Minimum age in milliseconds of temporary files that a killed process has left behind. */
const temporaryMs = 60_000;

const loaded = new Map<string, unknown>();

/**
 * Reports whether this user owns the directory. Root must not load a service user's files from it, nor leave files
 * there that the service user cannot read.
 */
function isOwn(directory: string): boolean {
  const stats = statSync(directory, { throwIfNoEntry: false });
  return stats === undefined || stats.uid === process.geteuid?.();
}

function ownCache(): string {
  if (process.geteuid?.() === 0) return '/var/cache/muster';
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'muster');
}

const faultOf = (folder: string): string | null => unguarded(stepsTo(folder), process.geteuid?.() ?? 0);

/**
 * Returns a folder for native addons that only this user can change.
 * @throws Error if other users can change both the directory and the cache
 */
function ownFolder(directory: string, cache: () => string): string {
  const faults: string[] = [];
  // Computes the cache path only if needed, because a service user may have no home directory.
  for (const parentOf of isOwn(directory) ? [() => directory, cache] : [cache]) {
    const folder = join(parentOf(), 'addons');
    const fault = faultOf(folder);
    if (fault === null) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      requireOwn(folder, lstatSync(folder), 'directory');
      // Another process may have created the folder since the first check.
      const since = faultOf(folder);
      if (since === null) return folder;
      faults.push(since);
    } else faults.push(fault);
  }
  throw new Error(
    `there is no folder for native addons that only this user can write to: ${faults.join('; ')}. Correct the permissions, choose another data directory, or set XDG_CACHE_HOME`,
  );
}

/**
 * Extracts the native addon unless its file exists. The file name depends on the content, so releases do not conflict.
 * @param cache returns the cache, which is used if other users own the directory or can write to it
 * @returns the path of the file
 */
export function addonPath({ name, directory, sha256, content }: CarriedAddon, cache = ownCache): string {
  const folder = ownFolder(directory, cache);
  const path = join(folder, `${name}-${sha256.slice(0, 16)}.node`);
  if (isIntact(path, sha256)) return path;
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    writeFileSync(temporary, content(), { flag: 'wx', mode: 0o500 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (!isIntact(path, sha256)) throw new Error(`${path} differs from the data that was written to it; check the disk`);
  removeOthers(folder, name, path);
  return path;
}

/** Refuses files that other users can write to, because this process would run their code. */
function requireOwn(path: string, stats: ReturnType<typeof fstatSync>, kind: 'directory' | 'file'): void {
  const isKind = kind === 'directory' ? stats.isDirectory() : stats.isFile();
  const own = stats.uid === process.geteuid?.() || stats.uid === 0;
  if (!isKind || !own || (Number(stats.mode) & 0o022) !== 0)
    throw new Error(`${path} must be a ${kind} of this user that others cannot write to; remove it, and start again`);
}

function isIntact(path: string, sha256: string): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  try {
    requireOwn(path, fstatSync(file), 'file');
    return hash('sha256', readFileSync(file)) === sha256;
  } finally {
    closeSync(file);
  }
}

/**
 * Removes files of earlier releases and files that killed processes left. A process that has loaded such a file keeps
 * its mapping.
 */
function removeOthers(folder: string, name: string, current: string): void {
  for (const entry of readdirSync(folder)) {
    const path = join(folder, entry);
    if (!entry.startsWith(`${name}-`) || path === current) continue;
    const stats = lstatSync(path, { throwIfNoEntry: false });
    // A recent temporary file belongs to a write in progress.
    if (entry.endsWith('.tmp') && stats !== undefined && Date.now() - stats.mtimeMs < temporaryMs) continue;
    rmSync(path, { force: true });
  }
}

/**
 * Explains why loading failed.
 * @param said message of the system loader
 */
export function whyNotLoaded(path: string, said: string): string {
  const remedy = said.includes('failed to map segment')
    ? '. Its file system is mounted noexec; choose another data directory, or mount it with exec'
    : '';
  return `${path} cannot be loaded: ${said}${remedy}`;
}

/**
 * Extracts and loads a native addon.
 * @returns its exports
 * @throws Error if it cannot be extracted or loaded
 */
export function loadAddon(addon: CarriedAddon): unknown {
  if (loaded.has(addon.name)) return loaded.get(addon.name);
  const path = addonPath(addon);
  const module = { exports: {} };
  try {
    process.dlopen(module, path);
  } catch (error) {
    throw new Error(whyNotLoaded(path, (error as Error).message));
  }
  loaded.set(addon.name, module.exports);
  return module.exports;
}
