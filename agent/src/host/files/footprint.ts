import { hash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What stands where packages keep configuration and data, so that two looks tell what appeared in between. */

/**
 * By path: `d` of a directory, `m` of one that another file system is mounted on, the size and time of a file, the
 * target of a link, `s` of a socket. Of the roots only those that lead elsewhere.
 */
export type Footprint = Map<string, string>;

const roots = ['/etc', '/var', '/opt', '/srv', '/usr/local'];
/** Caches, what is running, and what dpkg and apt keep account of themselves. */
const leftOut = new Set(['/var/lib/dpkg', '/var/lib/apt', '/var/cache', '/var/run', '/var/lock', '/var/tmp']);
/** Beyond so many entries nothing is said. */
const maxFootprint = 60_000;
/** Entries between two turns of the event loop. */
const breath = 500;

/**
 * Walks over them, staying on the file systems they are on, following no links and changing nothing. What it does not
 * look into is in it as a mount or a link.
 * @returns null when there is more than can be looked at
 */
export async function takeFootprint(limit: number = maxFootprint): Promise<Footprint | null> {
  const footprint: Footprint = new Map();
  const waiting = [...roots];
  let device: number | null = null;
  let sinceBreath = 0;
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    const own = lookAt(directory);
    if (own !== null && own.stamp !== 'd') footprint.set(directory, own.stamp);
    if (own === null || own.stamp !== 'd') continue;
    device = roots.includes(directory) ? own.device : device;
    for (const name of names(directory)) {
      const path = `${directory}/${name}`;
      if (leftOut.has(path)) continue;
      const found = lookAt(path);
      if (found === null) continue;
      const isMount = found.stamp === 'd' && found.device !== device;
      footprint.set(path, isMount ? 'm' : found.stamp);
      if (footprint.size > limit) return null;
      if (found.stamp === 'd' && !isMount) waiting.push(path);
      if (++sinceBreath < breath) continue;
      sinceBreath = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
  return footprint;
}

/**
 * Why nothing is known of what is at some of these paths or below them: the link or the mount that stands above it, or
 * the mount below.
 */
export function blindSpot(paths: Iterable<string>, footprint: Footprint): string | null {
  const mounts = [...footprint].flatMap(([place, stamp]) => (stamp === 'm' ? [place] : []));
  for (const path of paths) {
    for (let cut = path.length; cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
      const place = path.slice(0, cut);
      const stamp = footprint.get(place);
      // A link that is itself what is asked about goes alone: what it leads to stays.
      if (stamp === 'm' || (place !== path && stamp?.startsWith('l ') === true)) return place;
    }
    const below = mounts.find((place) => place.startsWith(`${path}/`));
    if (below !== undefined) return below;
  }
  return null;
}

/** When something came to be, in milliseconds; null when it is not there. */
export function bornAt(path: string): number | null {
  try {
    const { birthtimeMs, ctimeMs } = lstatSync(path);
    // Some file systems do not keep it.
    return birthtimeMs > 0 ? Math.min(birthtimeMs, ctimeMs) : ctimeMs;
  } catch {
    return null;
  }
}

/** What stands at one path; null when nothing does. */
export const stampAt = (path: string): string | null => lookAt(path)?.stamp ?? null;

function lookAt(path: string): { stamp: string; device: number } | null {
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

/** Larger files are told apart by their size and time alone. */
const maxHashed = 256 * 1024;

/** What a file holds; null when it is no file, or too large to be read for that. */
export function digestAt(path: string, algorithm: 'md5' | 'sha1', limit: number = maxHashed): string | null {
  try {
    const stats = lstatSync(path);
    if (!stats.isFile() || stats.size > limit) return null;
    return hash(algorithm, readFileSync(path), 'hex');
  } catch {
    return null;
  }
}
