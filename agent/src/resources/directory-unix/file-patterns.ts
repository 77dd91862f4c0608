/**
 * Returns a function that reports whether a file below a directory matches one of the patterns. In a pattern, `*`
 * matches any characters of a name, including a dot at its start, and `?` matches one character. A pattern without `/`
 * matches the name of a file at any depth. The path to test is relative to the directory, without a leading slash.
 */
export function filesMatching(patterns: readonly string[]): (path: string) => boolean {
  const split = patterns.map((pattern) => ({
    isName: !pattern.includes('/'),
    names: pattern
      .replace(/^\//, '')
      .split('/')
      .map((name) => [...name]),
  }));
  return (path) => {
    const names = path.split('/').map((name) => [...name]);
    return split.some(({ isName, names: wanted }) => {
      if (isName) return matchesName(wanted[0] as string[], names.at(-1) as string[]);
      return wanted.length === names.length && wanted.every((one, depth) => matchesName(one, names[depth] as string[]));
    });
  };
}

/** Compares in at most pattern × name steps, because users choose names. */
function matchesName(wanted: readonly string[], found: readonly string[]): boolean {
  let [at, next] = [0, 0];
  /** Position of the last `*`, and of the first character that it does not match yet. */
  let star: { at: number; next: number } | null = null;
  while (next < found.length) {
    if (wanted[at] === '*') star = { at: at++, next };
    else if (wanted[at] === '?' || (at < wanted.length && wanted[at] === found[next])) {
      at++;
      next++;
    } else if (star !== null) {
      at = star.at + 1;
      next = ++star.next;
    } else return false;
  }
  while (wanted[at] === '*') at++;
  return at === wanted.length;
}
