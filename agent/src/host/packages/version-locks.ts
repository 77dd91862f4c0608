import { writeRootFile } from '../files/root-file.ts';
import { readText } from '../read-system.ts';
import type { RpmVersion } from './rpm-version.ts';

/** Reads and edits the list of dnf's plugin versionlock. dnf's own command drops the comments of the list. */

const pluginFile = '/etc/dnf/plugins/versionlock.conf';
const listFile = '/etc/dnf/plugins/versionlock.list';

/** A line of the list, and its index. */
export type VersionLock = { at: number; line: string };

/** Reports whether the plugin is installed and enabled. */
export const locksVersions = (): boolean => /^\s*enabled\s*=\s*(1|true|yes|on)\s*$/im.test(readText(pluginFile) ?? '');

/** Returns the text of the list; empty if the plugin does not read it. */
export const readLockList = (): string => (locksVersions() ? (readText(listFile) ?? '') : '');

/**
 * Changes the list.
 * @throws HostFailure if it cannot be written
 */
export async function editLockList(edit: (text: string) => string): Promise<void> {
  const text = readText(listFile) ?? '';
  const edited = edit(text);
  if (edited !== text) await writeRootFile(listFile, edited, 0o644);
}

/**
 * Returns the name of the package that a line locks: `name-epoch:version-release.arch`, with `*` for any part. Null for
 * a comment, and for a line with `!`, which excludes a version but does not lock the package.
 */
function lockedName(line: string): string | null {
  const entry = line.replace(/#.*/, '').trim();
  if (entry === '' || entry.startsWith('!')) return null;
  return /^(.+?)-(?:\d+|\*):[^:]*$/.exec(entry)?.[1] ?? /^(.+)-[^-]+-[^-]+$/.exec(entry)?.[1] ?? entry;
}

/** Returns the names of all locked packages, which may be patterns. */
export const parseLocks = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const name = lockedName(line);
    return name === null ? [] : [name];
  });

/** Returns the lines that lock exactly this package. Excludes patterns, which may also lock other packages. */
export const locksOf = (text: string, name: string): VersionLock[] =>
  text.split('\n').flatMap((line, at) => (lockedName(line) === name ? [{ at, line }] : []));

/** Replaces the lines that lock exactly this package. An index beyond the list refers to its end. */
export function withLocks(text: string, name: string, locks: readonly VersionLock[]): string {
  const lines = text.split('\n').filter((line) => lockedName(line) !== name);
  // The last line is the empty text after the last line break.
  for (const { at, line } of locks) lines.splice(Math.min(at, Math.max(0, lines.length - 1)), 0, line);
  return lines.join('\n');
}

/** Returns the line that locks a package at a version, as `dnf versionlock add` writes it. */
export const lockLine = (name: string, version: RpmVersion): string => `${name}-${nevra(version)}.*`;

const nevra = ({ epoch, version, release }: RpmVersion): string => `${epoch}:${version}-${release}`;
