import { lowerBound, matchesPattern } from './version-range.ts';

/** Pure functions that format and compare versions as rpm does. */

export interface RpmVersion {
  epoch: number;
  version: string;
  release: string;
}

/** Formats a version in dnf's notation, such as `1:2.0-3`, which omits an epoch of 0. */
export const versionText = ({ epoch, version, release }: RpmVersion): string =>
  `${epoch === 0 ? '' : `${epoch}:`}${version}-${release}`;

/**
 * Reports whether a version satisfies a declared one. `2.0` matches every release and epoch of 2.0, `0:2.0` only those
 * without an epoch, `2.*` every version with this prefix, and `>=2.0` every version from 2.0 upward. As in rpm, a
 * minimum without an epoch has epoch 0.
 */
export function isVersion(range: string, found: RpmVersion): boolean {
  const bound = lowerBound(range);
  const [, epoch, rest = ''] = /^(?:(\d+):)?(.*)$/.exec(bound ?? range) ?? [];
  if (bound === null) {
    if (epoch !== undefined && Number(epoch) !== found.epoch) return false;
    return matchesPattern(rest, found.version) || matchesPattern(rest, `${found.version}-${found.release}`);
  }
  const [version = '', release] = rest.split('-', 2);
  const minimum = { epoch: Number(epoch ?? 0), version, release: release ?? found.release };
  return compareRpmVersions(found, minimum) >= 0;
}

export const compareRpmVersions = (a: RpmVersion, b: RpmVersion): number =>
  a.epoch - b.epoch || compareParts(a.version, b.version) || compareParts(a.release, b.release);

/** Follows rpmvercmp: compares sequences of digits or letters, and treats all other characters as separators. */
export function compareParts(a: string, b: string): number {
  let [left, right] = [a, b];
  for (;;) {
    left = left.replace(/^[^A-Za-z0-9~^]+/, '');
    right = right.replace(/^[^A-Za-z0-9~^]+/, '');
    // `~` sorts before everything, even the end of the text.
    if (left.startsWith('~') || right.startsWith('~')) {
      if (!left.startsWith('~')) return 1;
      if (!right.startsWith('~')) return -1;
      [left, right] = [left.slice(1), right.slice(1)];
      continue;
    }
    // `^` sorts after the end of the text and before everything else.
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
    // Digits sort after letters.
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
