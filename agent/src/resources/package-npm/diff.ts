import type { FieldChange } from '@muster/protocol';
import satisfies from 'semver/functions/satisfies.js';
import validRange from 'semver/ranges/valid.js';
import { HostFailure } from '../../host/failure.ts';
import { type Circumstances, type Difference, nothing } from '../provider/provider.ts';
import { type Declared, prefixOf, type SeenNpmPackage } from './seen.ts';

/** State before the agent's first change. */
export type NpmPackageBefore = {
  /** Null if the package was not installed. */
  version: string | null;
  /** Directories that did not exist, outermost first. */
  absentDirectories: string[];
};

/** Reports whether an installed version meets the declared one. If no version is declared, any version meets it. */
export const isVersionMet = (installed: string, declared: string | null | undefined): boolean =>
  declared == null || satisfies(installed, declared);

/** @throws HostFailure if the version is neither a version nor a range */
export function checkVersion(version: string | null | undefined): void {
  if (version != null && validRange(version) === null)
    throw new HostFailure(`\`version\` must be a version or a range of npm, such as ^5.4: ${JSON.stringify(version)}`);
}

export function diffNpmPackage(
  resource: Declared,
  seen: SeenNpmPackage,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name, version: declared, ensure } = resource.body;
  const difference = ensure === 'absent' ? absence(seen) : presence(declared, seen);
  if (difference.action === 'none' || purpose === 'drift') return difference;
  if (seen.isLink)
    throw new HostFailure(`${name} in ${prefixOf(resource)} is a link, as npm link makes it: run npm unlink first`);
  if (seen.unsafe !== null) throw new HostFailure(seen.unsafe);
  return { ...difference, ...(seen.missing.length === 0 ? {} : { awaits: seen.missing }) };
}

const presenceChange = (from: string, to: string): FieldChange => ({ field: 'ensure', from, to });

/** Returns the changes that complete an installed package. */
const repairs = ({ isInterrupted, unlinked }: SeenNpmPackage): FieldChange[] => [
  ...(isInterrupted ? [{ field: 'files', from: 'incomplete', to: 'complete' }] : []),
  ...(unlinked.length > 0 ? [{ field: 'commands', from: `missing: ${unlinked.join(', ')}`, to: 'linked' }] : []),
];

function absence({ version, isLink, isInterrupted, dangling }: SeenNpmPackage): Difference {
  if (version === null && !isLink && !isInterrupted) {
    if (dangling.length === 0) return nothing();
    const changes = [{ field: 'commands', from: `left: ${dangling.join(', ')}`, to: null }];
    return { action: 'remove', changes, diff: null };
  }
  return {
    action: 'remove',
    changes: [presenceChange('present', 'absent'), { field: 'version', from: version, to: null }],
    diff: null,
  };
}

function presence(declared: string | null | undefined, seen: SeenNpmPackage): Difference {
  const { version, isLink } = seen;
  const to = declared ?? 'any';
  if (isLink) return { action: 'update', changes: [{ field: 'version', from: 'a link', to }], diff: null };
  if (version === null) {
    const changes = [presenceChange('absent', 'present'), { field: 'version', from: null, to }];
    return { action: 'create', changes, diff: null };
  }
  const changes: FieldChange[] = [];
  if (!isVersionMet(version, declared)) changes.push({ field: 'version', from: version, to });
  changes.push(...repairs(seen));
  return changes.length === 0 ? nothing() : { action: 'update', changes, diff: null };
}

export function diffNpmPackageRemoval(_resource: Declared, before: NpmPackageBefore, seen: SeenNpmPackage): Difference {
  const difference = removalOf(before, seen);
  if (difference.action !== 'none' && seen.unsafe !== null) throw new HostFailure(seen.unsafe);
  return difference;
}

function removalOf(before: NpmPackageBefore, seen: SeenNpmPackage): Difference {
  const { version, isInterrupted, emptyDirectories } = seen;
  const restored: Difference = { action: 'remove', changes: [], diff: null, message: 'restores the original state' };
  if (seen.isLink) return nothing('kept: npm link replaced the package with a link');
  if (before.version === null) {
    if (version !== null || isInterrupted || seen.dangling.length > 0)
      return { ...restored, changes: absence(seen).changes, message: 'removes the package' };
    const left = before.absentDirectories.filter((directory) => emptyDirectories.includes(directory));
    if (left.length === 0) return nothing('already removed');
    return { ...restored, changes: [{ field: 'directories', from: left.join(', '), to: null }] };
  }
  const changes: FieldChange[] = [];
  if (version === null) changes.push(presenceChange('absent', 'present'));
  if (version !== before.version) changes.push({ field: 'version', from: version, to: before.version });
  changes.push(...repairs(seen));
  if (changes.length === 0) return nothing('already in its original state');
  return { ...restored, changes, ...(seen.missing.length === 0 ? {} : { awaits: seen.missing }) };
}
