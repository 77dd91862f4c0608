import { lowerBound, matchesPattern } from './version-range.ts';

/** Versions as rpm writes and orders them. Pure. */

export interface RpmVersion {
  epoch: number;
  version: string;
  release: string;
}

/** `1:2.0-3`, without an epoch of 0: as dnf takes it. */
export const versionText = ({ epoch, version, release }: RpmVersion): string =>
  `${epoch === 0 ? '' : `${epoch}:`}${version}-${release}`;

/**
 * Whether it is a version that people mean: `2.0` is any release and epoch of 2.0, `0:2.0` only that without one, `2.*`
 * any that begins so, and `>=2.0` that or a newer one, where no epoch means 0 as it does for rpm.
 */
export function isVersion(wanted: string, found: RpmVersion): boolean {
  const bound = lowerBound(wanted);
  const [, epoch, rest = ''] = /^(?:(\d+):)?(.*)$/.exec(bound ?? wanted) ?? [];
  if (bound === null) {
    if (epoch !== undefined && Number(epoch) !== found.epoch) return false;
    return matchesPattern(rest, found.version) || matchesPattern(rest, `${found.version}-${found.release}`);
  }
  const [version = '', release] = rest.split('-', 2);
  const least = { epoch: Number(epoch ?? 0), version, release: release ?? found.release };
  return compareRpmVersions(found, least) >= 0;
}

export const compareRpmVersions = (a: RpmVersion, b: RpmVersion): number =>
  a.epoch - b.epoch || compareParts(a.version, b.version) || compareParts(a.release, b.release);

/** One part of a version, as rpm's own comparison has it: runs of digits or of letters, the rest only separates them. */
export function compareParts(a: string, b: string): number {
  let [left, right] = [a, b];
  for (;;) {
    left = left.replace(/^[^A-Za-z0-9~^]+/, '');
    right = right.replace(/^[^A-Za-z0-9~^]+/, '');
    // Before everything, the end as well.
    if (left.startsWith('~') || right.startsWith('~')) {
      if (!left.startsWith('~')) return 1;
      if (!right.startsWith('~')) return -1;
      [left, right] = [left.slice(1), right.slice(1)];
      continue;
    }
    // After the end, before everything else.
    if (left.startsWith('^') || right.startsWith('^')) {
      if (left === '') return -1;
      if (right === '') return 1;
      if (!left.startsWith('^')) return 1;
      if (!right.startsWith('^')) return -1;
      [left, right] = [left.slice(1), right.slice(1)];
      continue;
    }
    if (left === '' || right === '') return left === right ? 0 : left === '' ? -1 : 1;
    const isNumber = /^\d/.test(left);
    const segment = isNumber ? /^\d+/ : /^[A-Za-z]+/;
    const [x, y] = [segment.exec(left)?.[0] ?? '', segment.exec(right)?.[0] ?? ''];
    // A number is newer than letters.
    if (y === '') return isNumber ? 1 : -1;
    const order = isNumber ? compareNumbers(x, y) : x < y ? -1 : x > y ? 1 : 0;
    if (order !== 0) return order;
    [left, right] = [left.slice(x.length), right.slice(y.length)];
  }
}

function compareNumbers(a: string, b: string): number {
  const [x, y] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return x.length - y.length || (x < y ? -1 : x > y ? 1 : 0);
}
