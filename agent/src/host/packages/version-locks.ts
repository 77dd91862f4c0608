import { readText } from '../read-system.ts';
import type { PackageLock, PackageLocks } from './package-locks.ts';
import type { PackageVersion } from './rpm-version.ts';

/** Reads and edits the list of dnf's plugin versionlock. dnf's own command drops the comments of the list. */

const pluginFile = '/etc/dnf/plugins/versionlock.conf';
const usualList = '/etc/dnf/plugins/versionlock.list';

/** Returns the path of the list, which `locklist` in the settings of the plugin may change. */
export const lockListIn = (settings: string): string =>
  /^[ \t]*locklist[ \t]*[=:][ \t]*(\/\S*)[ \t]*$/m.exec(settings)?.[1] ?? usualList;

/** Reports whether the plugin is installed and enabled. */
const locksVersions = (): boolean => /^\s*enabled\s*=\s*(1|true|yes|on)\s*$/im.test(readText(pluginFile) ?? '');

/**
 * Returns the name of the package that a line locks: `name-epoch:version-release.arch`, with `*` for any part. Null for
 * a comment, and for a line with `!`, which excludes a version but does not lock the package.
 */
function lockedName(line: string): string | null {
  const entry = line.replace(/#.*/, '').trim();
  if (entry === '' || entry.startsWith('!')) return null;
  // A version and a release start with a digit, unlike the last parts of a name such as python3-foo-bar.
  return /^(.+?)-(?:\d+|\*):[^:]*$/.exec(entry)?.[1] ?? /^(.+)-[\d*][^-]*-[\d*][^-]*$/.exec(entry)?.[1] ?? entry;
}

/** Returns the names of all locked packages, which may be patterns. */
export const parseLocks = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const name = lockedName(line);
    return name === null ? [] : [name];
  });

/** Returns the lines that lock exactly this package. Excludes patterns, which may also lock other packages. */
export const locksOf = (text: string, name: string): PackageLock[] =>
  text.split('\n').flatMap((line, at) => (lockedName(line) === name ? [{ at, line }] : []));

/** Replaces the lines that lock exactly this package. An index beyond the list refers to its end. */
export function withLocks(text: string, name: string, locks: readonly PackageLock[]): string {
  const lines = text.split('\n').filter((line) => lockedName(line) !== name);
  // The last line is the empty text after the last line break.
  for (const { at, line } of locks) lines.splice(Math.min(at, Math.max(0, lines.length - 1)), 0, line);
  return lines.join('\n');
}

/** Returns the line that locks a package at a version, as `dnf versionlock add` writes it. */
export const lockLine = (name: string, version: PackageVersion): string => `${name}-${nevra(version)}.*`;

const nevra = ({ epoch, version, release }: PackageVersion): string => `${epoch}:${version}-${release}`;

export const versionLocks: PackageLocks = {
  title: "the list of dnf's versionlock",
  file: () => lockListIn(readText(pluginFile) ?? ''),
  isDeletedIfEmpty: false,
  isUsed: locksVersions,
  names: parseLocks,
  of: locksOf,
  replaced: withLocks,
  entries: (name, version, former) => [{ at: former[0]?.at ?? 0, line: lockLine(name, version) }],
};
