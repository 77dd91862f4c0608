/**
 * Compares two versions as dpkg does: epoch, upstream version, revision. Every string has a position in the order.
 * @returns a negative number if `a` is older, 0 if they are equal, such as `1.01` and `1.1`
 * @see https://www.debian.org/doc/debian-policy/ch-controlfields.html#version
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [splitVersion(a), splitVersion(b)];
  if (left.epoch !== right.epoch) return left.epoch - right.epoch;
  return compareParts(left.upstream, right.upstream) || compareParts(left.revision, right.revision);
}

function splitVersion(version: string): { epoch: number; upstream: string; revision: string } {
  const colon = version.indexOf(':');
  const rest = version.slice(colon + 1);
  const dash = rest.lastIndexOf('-');
  return {
    epoch: colon < 0 ? 0 : Number(version.slice(0, colon)) || 0,
    upstream: dash < 0 ? rest : rest.slice(0, dash),
    revision: dash < 0 ? '' : rest.slice(dash + 1),
  };
}

function compareParts(a: string, b: string): number {
  let [i, j] = [0, 0];
  const isDigit = (text: string, at: number): boolean => text[at] !== undefined && /\d/.test(text[at]);
  while (i < a.length || j < b.length) {
    while ((i < a.length && !isDigit(a, i)) || (j < b.length && !isDigit(b, j))) {
      const difference = weightOf(isDigit(a, i) ? undefined : a[i]) - weightOf(isDigit(b, j) ? undefined : b[j]);
      if (difference !== 0) return difference;
      i++;
      j++;
    }
    const [left, right] = [/^\d*/.exec(a.slice(i))?.[0] ?? '', /^\d*/.exec(b.slice(j))?.[0] ?? ''];
    const [x, y] = [left.replace(/^0+/, ''), right.replace(/^0+/, '')];
    if (x.length !== y.length) return x.length - y.length;
    if (x !== y) return x < y ? -1 : 1;
    i += left.length;
    j += right.length;
  }
  return 0;
}

/**
 * Returns the sort weight of a character: `~` sorts before the end of text, then letters, then all other characters.
 */
function weightOf(character: string | undefined): number {
  if (character === undefined) return 0;
  if (character === '~') return -1;
  const code = character.charCodeAt(0);
  return /[A-Za-z]/.test(character) ? code : code + 256;
}
