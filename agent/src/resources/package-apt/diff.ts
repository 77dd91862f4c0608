import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { compareVersions } from '@muster/protocol/version-order';
import { HostFailure } from '../../host/failure.ts';
import { isVersion } from '../../host/packages/dpkg.ts';
import { type Circumstances, type Difference, nothing, presenceDrift } from '../provider/provider.ts';
import { bodyOf, isThere, type SeenPackage } from './seen.ts';

export function diffPackage(
  resource: ResolvedResource,
  seen: SeenPackage,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name, version, recommends, hold = null, ensure } = bodyOf(resource);
  const asDrift = purpose === 'drift';
  const there = isThere(seen.state);
  if (ensure === 'absent') {
    if (!there) return nothing();
    if (seen.held && hold === null && !asDrift) throw onHold(name, 'removed');
    if (seen.vital !== undefined && !asDrift) throw vital(name, seen.vital);
    return presenceDrift();
  }
  const target = seen.file === undefined ? targetVersionOf(version ?? null, seen) : seen.file.version;
  const changes: FieldChange[] = [];
  if (!there) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  else if (!seen.whole) changes.push({ field: 'state', from: seen.state, to: 'installed' });
  // A newer offered version is not drift, because the machine itself has not changed.
  const stays = asDrift && there && version === 'latest';
  const moves = target !== null && target !== seen.version && !stays;
  if (moves) changes.push({ field: 'version', from: seen.version, to: target });
  // An installed package does not show how it was installed.
  if (recommends != null && !there) changes.push({ field: 'recommends', from: null, to: String(recommends) });
  if (hold !== null && seen.held !== hold) changes.push({ field: 'hold', from: String(seen.held), to: String(hold) });
  if (changes.length === 0) return nothing(seen.offer?.trouble == null ? undefined : notRefreshed(seen.offer.trouble));
  if (asDrift) return { action: there ? 'update' : 'create', changes, diff: null };
  if (seen.held && hold === null && (moves || !there)) throw onHold(name, there ? `changed to ${target}` : 'installed');
  const missing = seen.file !== undefined || (there && !moves) ? null : whatIsMissing(name, target, seen);
  const lower = moves && seen.version !== null && target !== null && compareVersions(target, seen.version) < 0;
  const trouble = seen.offer?.trouble == null ? [] : [notRefreshed(seen.offer.trouble)];
  const notes = [...(lower ? [`${target} is older than ${seen.version}, so this is a downgrade`] : []), ...trouble];
  return {
    action: there ? 'update' : 'create',
    changes,
    diff: null,
    ...(missing === null ? {} : { awaits: [{ kind: 'packages' as const, message: missing }] }),
    ...(notes.length === 0 ? {} : { message: notes.join('; ') }),
  };
}

/**
 * Returns the version to install, or null for any: of the versions that satisfy the declared one, the installed version
 * or, if it is not among them, the one that apt prefers.
 */
function targetVersionOf(version: string | null, seen: SeenPackage): string | null {
  if (version === null) return null;
  if (version === 'latest') return latestOf(seen);
  if (seen.version !== null && isVersion(version, seen.version)) return seen.version;
  const { candidate = null, offered = [] } = seen.offer ?? {};
  if (candidate !== null && isVersion(version, candidate)) return candidate;
  const newestFirst = offered.filter((found) => isVersion(version, found)).sort((a, b) => compareVersions(b, a));
  return newestFirst[0] ?? version;
}

/** Returns the installed version if the sources offer no newer one, because it may have been installed by hand. */
function latestOf({ version, offer }: SeenPackage): string | null {
  const candidate = offer?.candidate ?? null;
  if (candidate === null || version === null) return candidate;
  return compareVersions(candidate, version) > 0 ? candidate : version;
}

const onHold = (name: string, what: string): HostFailure =>
  new HostFailure(
    `${name} is on hold on this machine, so it is not ${what}; to release it, run: apt-mark unhold ${name}`,
  );

/** Returns the error for an attempt to remove a vital package, even if the package is declared absent. */
export const vital = (name: string, reason: string): HostFailure =>
  new HostFailure(`${name} is not removed: ${reason}`);

export const notRefreshed = (trouble: string): string => `the package lists could not be refreshed: ${trouble}`;

/** Returns the reason why no source can provide the declared package, or null if none is known. */
function whatIsMissing(name: string, version: string | null, { offer }: SeenPackage): string | null {
  const trouble = offer?.trouble == null ? '' : `; ${notRefreshed(offer.trouble)}`;
  if (offer?.candidate == null) {
    if (offer !== null && offer.providers.length > 0)
      return `${name} is a virtual package; declare a package that provides it: ${offer.providers.join(', ')}`;
    return `no source of this machine offers a package ${name}${trouble}`;
  }
  if (version === null || version === offer.candidate || offer.offered.includes(version)) return null;
  const others = offer.offered.length === 0 ? offer.candidate : offer.offered.join(', ');
  return `no source of this machine offers ${name} ${version}, only ${others}${trouble}`;
}
