import type { PackageVersion } from '../rpm-version.ts';

/** Compares two complete versions as pacman's `vercmp` does. */
export const comparePacmanVersions = (a: PackageVersion, b: PackageVersion): number =>
  a.epoch - b.epoch ||
  compareParts(a.version, b.version) ||
  (a.release === '' || b.release === '' ? 0 : compareParts(a.release, b.release));

/** In contrast to rpm, a longer separator is newer, and letters at the end are older: `1.0rc` comes before `1.0`. */
function compareParts(a: string, b: string): number {
  let [left, right] = [a, b];
  while (left !== '' && right !== '') {
    const [before, after] = [left.length, right.length];
    left = left.replace(/^[^A-Za-z0-9]+/, '');
    right = right.replace(/^[^A-Za-z0-9]+/, '');
    if (left === '' || right === '') break;
    const separators = before - left.length - (after - right.length);
    if (separators !== 0) return separators;
    const isNumber = /^\d/.test(left);
    const segment = isNumber ? /^\d+/ : /^[A-Za-z]+/;
    const [x, y] = [segment.exec(left)?.[0] ?? '', segment.exec(right)?.[0] ?? ''];
    if (y === '') return isNumber ? 1 : -1;
    const order = isNumber ? compareNumbers(x, y) : compareText(x, y);
    if (order !== 0) return order;
    [left, right] = [left.slice(x.length), right.slice(y.length)];
  }
  if (left === '' && right === '') return 0;
  const isLetter = (text: string): boolean => /^[A-Za-z]/.test(text);
  return (left === '' && !isLetter(right)) || isLetter(left) ? -1 : 1;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function compareNumbers(a: string, b: string): number {
  const [x, y] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return x.length - y.length || compareText(x, y);
}
