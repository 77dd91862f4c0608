/**
 * Compares two versions, or two releases, as rpmvercmp does: by sequences of digits or letters. All other characters are
 * separators.
 * @returns a negative number if `a` is older, 0 if they are equal, such as `2_0` and `2.0`
 */
export function compareRpmParts(a: string, b: string): number {
  let [left, right] = [a, b];
  for (;;) {
    left = left.replace(/^[^A-Za-z0-9~^]+/, '');
    right = right.replace(/^[^A-Za-z0-9~^]+/, '');
    // `~` sorts before everything, even the end of the string.
    if (left.startsWith('~') || right.startsWith('~')) {
      if (!left.startsWith('~')) return 1;
      if (!right.startsWith('~')) return -1;
      [left, right] = [left.slice(1), right.slice(1)];
      continue;
    }
    // `^` sorts after the end of the string and before everything else.
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
