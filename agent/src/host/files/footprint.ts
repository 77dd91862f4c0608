import { hash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Snapshots of the directories in which packages keep configuration and data. The difference between two snapshots
 * shows which paths appeared in between.
 */

/**
 * Stamps by path: `d` for a directory, `m` for a mount point, size and time for a file, the target for a link, `s` for
 * all other types. Contains a root only if the root is not an ordinary directory.
 */
export type Footprint = Map<string, string>;

const roots = ['/etc', '/var', '/opt', '/srv', '/usr/local'];
/** Caches, runtime data, and the databases of dpkg and apt. */
const excluded = new Set(['/var/lib/dpkg', '/var/lib/apt', '/var/cache', '/var/run', '/var/lock', '/var/tmp']);
const maxFootprint = 60_000;
/** Number of entries after which the walk yields to the event loop. */
const entriesPerTurn = 500;

/**
 * Walks the roots without following links or entering mounts, which are in the result with their own stamps.
 * @returns null if there are more than {@link maxFootprint} entries
 */
export async function takeFootprint(): Promise<Footprint | null> {
  const footprint: Footprint = new Map();
  const waiting = [...roots];
  let device: number | null = null;
  let sinceYield = 0;
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    const own = stampOf(directory);
    if (own !== null && own.stamp !== 'd') footprint.set(directory, own.stamp);
    if (own === null || own.stamp !== 'd') continue;
    device = roots.includes(directory) ? own.device : device;
    for (const name of names(directory)) {
      const path = `${directory}/${name}`;
      if (excluded.has(path)) continue;
      const found = stampOf(path);
      if (found === null) continue;
      const isMount = found.stamp === 'd' && found.device !== device;
      footprint.set(path, isMount ? 'm' : found.stamp);
      if (footprint.size > maxFootprint) return null;
      if (found.stamp === 'd' && !isMount) waiting.push(path);
      if (++sinceYield < entriesPerTurn) continue;
      sinceYield = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
  return footprint;
}

/**
 * Finds why the footprint does not cover the given paths: a link or mount above one of them, or a mount below one of
 * them.
 * @returns the path of that link or mount; null if all are covered
 */
export function blindSpot(paths: Iterable<string>, footprint: Footprint): string | null {
  const mounts = [...footprint].flatMap(([mount, stamp]) => (stamp === 'm' ? [mount] : []));
  for (const path of paths) {
    for (let cut = path.length; cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
      const ancestor = path.slice(0, cut);
      const stamp = footprint.get(ancestor);
      // A link in `paths` is itself covered, because removing the link keeps its target.
      if (stamp === 'm' || (ancestor !== path && stamp?.startsWith('l ') === true)) return ancestor;
    }
    const below = mounts.find((mount) => mount.startsWith(`${path}/`));
    if (below !== undefined) return below;
  }
  return null;
}

/** Returns the creation time in milliseconds since the epoch, or null if the path does not exist. */
export function bornAt(path: string): number | null {
  try {
    const { birthtimeMs, ctimeMs } = lstatSync(path);
    // Some file systems do not store the creation time.
    return birthtimeMs > 0 ? Math.min(birthtimeMs, ctimeMs) : ctimeMs;
  } catch {
    return null;
  }
}

/** Returns a path's stamp, or null if the path does not exist. */
export const stampAt = (path: string): string | null => stampOf(path)?.stamp ?? null;

function stampOf(path: string): { stamp: string; device: number } | null {
  try {
    const stats = lstatSync(path);
    const { dev: device } = stats;
    if (stats.isDirectory()) return { stamp: 'd', device };
    if (stats.isSymbolicLink()) return { stamp: `l ${readlinkSync(path)}`, device };
    if (stats.isFile()) return { stamp: `f ${stats.size} ${Math.floor(stats.mtimeMs)}`, device };
    return { stamp: 's', device };
  } catch {
    return null;
  }
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Maximum size of files to hash, in bytes. Larger files are compared only by size and time. */
const maxHashed = 256 * 1024;

/** Returns the digest of a file, or null if the path is not a file or the file is larger than `limit` bytes. */
export function digestAt(path: string, algorithm: 'md5' | 'sha1', limit: number = maxHashed): string | null {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || stats.size > limit) return null;
    return hash(algorithm, readFileSync(path), 'hex');
  } catch {
    return null;
  }
}
