import { compareRpmParts } from '@muster/protocol/rpm-version-order';
import { lowerBound, matchesPattern } from './version-range.ts';

/** Pure functions that format and compare versions as rpm does. */

/** A version of rpm or pacman. */
export interface PackageVersion {
  epoch: number;
  version: string;
  release: string;
}

/** Formats a version in dnf's notation, such as `1:2.0-3`, which omits an epoch of 0. */
export const versionText = ({ epoch, version, release }: PackageVersion): string =>
  `${epoch === 0 ? '' : `${epoch}:`}${version}-${release}`;

/** Parses a complete version in dnf's notation. */
export function parseVersion(text: string): PackageVersion {
  const [, epoch = '0', version = text, release = ''] = /^(?:(\d+):)?(.*)-([^-]*)$/.exec(text) ?? [];
  return { epoch: Number(epoch), version, release };
}

/**
 * Reports whether a version satisfies a declared one. `2.0` matches every release and epoch of 2.0, `0:2.0` only those
 * without an epoch, `2.*` every version with this prefix, and `>=2.0` every version from 2.0 upward. As in rpm, a
 * minimum without an epoch has epoch 0.
 * @param compare orders versions as the package manager does
 */
export function isVersion(range: string, found: PackageVersion, compare = compareRpmVersions): boolean {
  const bound = lowerBound(range);
  const [, epoch, rest = ''] = /^(?:(\d+):)?(.*)$/.exec(bound ?? range) ?? [];
  if (bound === null) {
    if (epoch !== undefined && Number(epoch) !== found.epoch) return false;
    return matchesPattern(rest, found.version) || matchesPattern(rest, `${found.version}-${found.release}`);
  }
  const [version = '', release] = rest.split('-', 2);
  const minimum = { epoch: Number(epoch ?? 0), version, release: release ?? found.release };
  return compare(found, minimum) >= 0;
}

export const compareRpmVersions = (a: PackageVersion, b: PackageVersion): number =>
  a.epoch - b.epoch || compareRpmParts(a.version, b.version) || compareRpmParts(a.release, b.release);
