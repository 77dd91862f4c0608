import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { isVersion, type PackageVersion, parseVersion, versionText } from '../../host/packages/rpm-version.ts';
import { type Circumstances, type Difference, nothing, presenceDrift } from '../provider/provider.ts';
import type { SeenPackage } from './seen.ts';
import { bodyOf, type PackageCommands } from './tool.ts';

/** The part of a package manager that decisions depend on. */
export type Notation = Pick<PackageCommands, 'compare' | 'locks' | 'lockedBecause' | 'cannotHold'>;

export function diffPackage(
  tool: Notation,
  resource: ResolvedResource,
  seen: SeenPackage,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name, version, hold = null, ensure } = bodyOf(resource);
  const asDrift = purpose === 'drift';
  const { installed } = seen;
  if (ensure === 'absent') {
    if (installed === null) return nothing();
    if (!asDrift) refuseLocked(tool, name, hold, seen, 'removed');
    return presenceDrift();
  }
  const { file } = seen;
  const target = file === undefined ? targetVersionOf(tool, version ?? null, seen) : file.version;
  const moves = target !== null && target !== (installed === null ? null : versionText(installed));
  const changes: FieldChange[] = [];
  if (installed === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (moves) changes.push({ field: 'version', from: installed === null ? null : versionText(installed), to: target });
  const isRequested = changes.length > 0;
  if (hold !== null && seen.locked !== hold)
    changes.push({ field: 'hold', from: String(seen.locked), to: String(hold) });
  const trouble = seen.offer?.trouble == null ? [] : [notRefreshed(seen.offer.trouble)];
  if (changes.length === 0) return nothing(trouble[0]);
  const action = installed === null ? 'create' : 'update';
  if (asDrift) return { action, changes, diff: null };
  const what = installed === null ? 'installed' : moves ? `changed to ${target}` : 'released';
  if (isRequested || hold === false) refuseLocked(tool, name, hold, seen, what);
  const missing = file === undefined && isRequested ? whatIsMissing(tool, resource, seen) : null;
  const awaits = [
    ...(missing === null ? [] : [{ kind: 'packages' as const, message: missing }]),
    ...(seen.lacksPlugin === true ? [{ kind: 'programs' as const, message: tool.cannotHold(name) }] : []),
  ];
  const chosen =
    file?.version?.includes('-') === true
      ? parseVersion(file.version)
      : (seen.offer?.versions.find((offered) => versionText(offered) === target) ?? null);
  const isLower = installed !== null && chosen !== null && tool.compare(chosen, installed) < 0;
  const notes = [
    ...(isLower ? [`${target} is older than ${versionText(installed)}, so this is a downgrade`] : []),
    ...trouble,
  ];
  return {
    action,
    changes,
    diff: null,
    ...(awaits.length === 0 ? {} : { awaits }),
    ...(notes.length === 0 ? {} : { message: notes.join('; ') }),
  };
}

/** Returns the complete version to install, or null for any. */
function targetVersionOf(tool: Notation, version: string | null, { installed, offer }: SeenPackage): string | null {
  if (version === null) return null;
  const newest = offer?.versions.at(-1) ?? null;
  if (version === 'latest') {
    // Keeps an installed version that is newer than the offered ones, because it may have been installed by hand.
    if (installed !== null && (newest === null || tool.compare(newest, installed) <= 0)) return versionText(installed);
    return newest === null ? null : versionText(newest);
  }
  if (installed !== null && isVersion(version, installed, tool.compare)) return versionText(installed);
  const fitting = offer?.versions.filter((offered) => isVersion(version, offered, tool.compare)).at(-1);
  return fitting === undefined ? version : versionText(fitting);
}

/**
 * @throws HostFailure if a lock prevents the change, and the module does not manage it or a pattern locks the package
 */
function refuseLocked(
  { locks, lockedBecause }: Notation,
  name: string,
  hold: boolean | null,
  seen: SeenPackage,
  what: string,
): void {
  if (!seen.locked) return;
  if (hold === null) throw locked({ lockedBecause }, name, what);
  if (seen.locks === undefined)
    throw new HostFailure(
      `${name} is not ${what}, because a pattern in ${locks.title} locks it; replace the pattern with the names of its packages`,
    );
}

export function locked(
  { lockedBecause }: Pick<PackageCommands, 'lockedBecause'>,
  name: string,
  what: string,
): HostFailure {
  const { reason, remedy } = lockedBecause(name);
  return new HostFailure(`${name} is ${reason}, so it is not ${what}; ${remedy}`);
}

export const notRefreshed = (trouble: string): string =>
  `the metadata of the repositories could not be refreshed: ${trouble}`;

/** Returns the reason why no repository can provide the declared package, or null if none is known. */
function whatIsMissing(tool: Notation, resource: ResolvedResource, { offer }: SeenPackage): string | null {
  const { name, version, from } = bodyOf(resource);
  const lacking = from == null ? 'no repository of this machine offers' : `the repository ${from} does not offer`;
  const trouble = offer?.trouble == null ? '' : `; ${notRefreshed(offer.trouble)}`;
  const versions: readonly PackageVersion[] = offer?.versions ?? [];
  if (versions.length === 0) {
    if (offer !== null && offer.providers.length > 0)
      return `${name} is not a package; declare a package that provides it: ${offer.providers.join(', ')}`;
    return `${lacking} a package ${name}${trouble}`;
  }
  if (version == null || version === 'latest' || versions.some((offered) => isVersion(version, offered, tool.compare)))
    return null;
  return `${lacking} ${name} ${version}, only ${versions.map(versionText).join(', ')}${trouble}`;
}
