/**
 * Reports whether a file below a directory matches a pattern. In a pattern, `*` stands for any characters of a name, also
 * for a dot at its start, and `?` for one. A pattern without `/` matches the name of a file at any depth.
 * @param path relative to the directory, without a slash at its start
 */
export const matchesAny = (patterns: readonly string[], path: string): boolean =>
  patterns.some((pattern) => matches(pattern, path));

function matches(pattern: string, path: string): boolean {
  const names = path.split('/');
  if (!pattern.includes('/')) return matchesName(pattern, names.at(-1) as string);
  const wanted = pattern.replace(/^\//, '').split('/');
  return wanted.length === names.length && wanted.every((one, depth) => matchesName(one, names[depth] as string));
}

/** Compares in at most pattern × name steps, because users choose names. */
function matchesName(pattern: string, name: string): boolean {
  const [wanted, found] = [[...pattern], [...name]];
  let [at, next] = [0, 0];
  /** Position of the last `*`, and of the first character that it does not stand for yet. */
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
