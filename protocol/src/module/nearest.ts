import { closest, distance } from 'fastest-levenshtein';

/**
 * What somebody probably meant by a name that is not known.
 * @returns the end of a sentence: `: did you mean "x"?`, or the names there are, or nothing
 */
export function suggestion(name: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  // Half of a compound name is nearer than any spelling: `user` is user-unix, `apt` is package-apt.
  const whole = known.filter((each) => each.startsWith(`${name}-`) || each.endsWith(`-${name}`));
  if (name !== '' && whole.length > 0 && whole.length <= 6)
    return `: did you mean ${whole.map((each) => `"${each}"`).join(' or ')}?`;
  // Comparing is quadratic in length; nobody means a field by a name this long.
  if (name.length <= 64) {
    const nearest = closest(name, known as string[]);
    if (distance(name, nearest) <= Math.max(2, Math.floor(name.length / 2))) return `: did you mean "${nearest}"?`;
  }
  return known.length <= 12 ? `: there are ${known.join(', ')}` : '';
}

/** A name as it may stand in a message: quoted, line breaks escaped, not endless. */
export const quoted = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
