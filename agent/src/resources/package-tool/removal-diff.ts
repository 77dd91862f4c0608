import { HostFailure } from '../../host/failure.ts';
import type { PackageLock } from '../../host/packages/package-locks.ts';
import { versionText } from '../../host/packages/rpm-version.ts';
import { type Difference, nothing } from '../provider/provider.ts';
import { locked, type Notation, notRefreshed } from './diff.ts';
import type { PackageBefore, SeenPackage } from './seen.ts';

/**
 * Decides how a removal restores the original state of a package.
 * @throws HostFailure if a lock prevents that, or if a repository that may offer the original version cannot be read
 */
export function diffPackageRemoval(tool: Notation, name: string, before: PackageBefore, seen: SeenPackage): Difference {
  const { installed } = seen;
  const old = before.version;
  if (old === null) {
    if (installed === null) return diffLocks(before, seen);
    if (seen.locked && before.locks === undefined) throw locked(tool, name, 'removed');
    return { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null };
  }
  const offered = seen.offer?.versions.find((found) => versionText(found) === old);
  const trouble = seen.offer?.trouble ?? null;
  if ((installed === null || versionText(installed) !== old) && offered === undefined && trouble !== null)
    throw new HostFailure(
      `${name} does not get its original version ${old} back, because ${notRefreshed(trouble)}; repair or disable the repository, and then apply again`,
    );
  // Packages from files have no repository.
  if (installed === null && seen.offer?.versions.length === 0)
    return diffLocks(before, seen, 'stays removed, because no repository offers it');
  if (installed === null)
    return {
      action: 'create',
      changes: [
        { field: 'ensure', from: 'absent', to: 'present' },
        ...(offered === undefined ? [] : [{ field: 'version', from: null, to: old }]),
        ...(before.locks === undefined || before.locks.length === 0
          ? []
          : [{ field: 'hold', from: 'false', to: 'true' }]),
      ],
      diff: null,
      ...(offered === undefined
        ? { message: `its version ${old} is no longer offered; another version will be installed` }
        : {}),
    };
  const now = versionText(installed);
  const changes: Difference['changes'] = [];
  const moves = now !== old && offered !== undefined;
  if (moves) {
    if (seen.locked && before.locks === undefined) throw locked(tool, name, `changed to ${old}`);
    changes.push({ field: 'version', from: now, to: old });
  }
  changes.push(...lockChange(before, seen));
  const left =
    now !== old && offered === undefined
      ? `kept at ${now}: the repositories no longer offer the original version ${old}`
      : undefined;
  if (changes.length === 0) return nothing(left);
  const isOlder = moves && tool.compare(offered, installed) < 0;
  const message = left ?? (isOlder ? `${old} is older than ${now}, so this is a downgrade` : undefined);
  return { action: 'update', changes, diff: null, ...(message === undefined ? {} : { message }) };
}

/** Decides how a removal restores the entries that locked a package which is not installed. */
function diffLocks(before: PackageBefore, seen: SeenPackage, message?: string): Difference {
  const changes = lockChange(before, seen);
  if (changes.length === 0) return nothing(message);
  return { action: 'update', changes, diff: null, ...(message === undefined ? {} : { message }) };
}

const lockChange = ({ locks }: PackageBefore, seen: SeenPackage): Difference['changes'] =>
  locks === undefined || sameLocks(locks, seen.locks ?? [])
    ? []
    : [{ field: 'hold', from: String(seen.locked), to: String(locks.length > 0) }];

const sameLocks = (one: readonly PackageLock[], other: readonly PackageLock[]): boolean =>
  one.length === other.length && one.every(({ line }, index) => line === other[index]?.line);
