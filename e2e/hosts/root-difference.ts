import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { join } from 'node:path';

/** Current state of each path that differs from the base root; `absent` if the path was deleted. */
export type RootDifference = Record<string, string>;

/** Paths that the comparison ignores: mounts, logs, caches, the package database, and the agent's data. */
export const volatilePaths: readonly string[] = [
  ...['/dev', '/proc', '/sys', '/run', '/tmp', '/var/tmp', '/var/log', '/var/cache', '/muster'],
  ...[
    '/var/lib/dpkg',
    '/var/lib/apt',
    '/var/lib/systemd/random-seed',
    '/var/lib/systemd/timers',
    '/var/lib/systemd/linger',
    '/var/lib/muster-agent',
  ],
  // The shadow tools' backup files.
  ...['/etc/passwd-', '/etc/group-', '/etc/shadow-', '/etc/gshadow-', '/etc/subuid-', '/etc/subgid-'],
];

interface Roots {
  /** The overlay's lower directory. */
  base: string;
  /** The overlay's upper directory. */
  upper: string;
  /** The overlay's mount point. */
  merged: string;
  volatile?: readonly string[] | undefined;
}

/**
 * Compares type, owner, permissions, and content of all files in an overlay with its lower directory. Reads only files
 * in the upper directory and their counterparts, because no other files can differ.
 */
export function differenceFromBase({ base, upper, merged, volatile = volatilePaths }: Roots): RootDifference {
  const found: RootDifference = {};
  const left = new Set(volatile);
  const visit = (folder: string): void => {
    // `merged` may be a link in /proc, which is followed only if the path has a trailing slash.
    const there = folder === '' ? new Set(readdirSync(`${merged}/`)) : namesIn(join(merged, folder));
    const below = namesIn(join(base, folder));
    for (const name of below) {
      const path = `${folder}/${name}`;
      if (!left.has(path) && !there.has(name)) found[path] = 'absent';
    }
    for (const name of there) {
      const path = `${folder}/${name}`;
      const stats = left.has(path) ? null : lstat(join(upper, path));
      if (stats === null) continue;
      const now = describe(join(upper, path), stats);
      if (now !== describe(join(base, path), lstat(join(base, path)))) found[path] = now;
      if (stats.isDirectory()) visit(path);
    }
  };
  visit('');
  return found;
}

function namesIn(folder: string): Set<string> {
  try {
    return new Set(lstatSync(folder).isDirectory() ? readdirSync(folder) : []);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Set();
    throw error;
  }
}

const lstat = (path: string): Stats | null => lstatSync(path, { throwIfNoEntry: false }) ?? null;

function describe(path: string, stats: Stats | null): string {
  if (stats === null) return 'absent';
  const meta = `${stats.uid}:${stats.gid} ${stats.mode.toString(8)}`;
  if (stats.isSymbolicLink()) return `${meta} → ${readlinkSync(path)}`;
  if (stats.isFile()) return `${meta} ${contentOf(path)}`;
  return stats.isDirectory() ? meta : `${meta} device ${stats.rdev}`;
}

/** Returns the content of a file if it is short text, otherwise its size and hash. */
function contentOf(path: string): string {
  const content = readFileSync(path);
  const text = content.toString('utf8');
  if (content.length < 4096 && !text.includes('\0') && !text.includes('\ufffd')) return text;
  return `${content.length} bytes, SHA-256 ${createHash('sha256').update(content).digest('hex')}`;
}
