import { closest, distance } from 'fastest-levenshtein';

/**
 * A suggestion for an unknown name.
 * @returns the end of a sentence: `: did you mean "x"?`, or the known names, or an empty text
 */
export function suggestion(name: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  // Half of a compound name matches before any spelling: `user` is user-unix, `apt` is package-apt.
  const whole = known.filter((each) => each.startsWith(`${name}-`) || each.endsWith(`-${name}`));
  if (name !== '' && whole.length > 0 && whole.length <= 6)
    return `: did you mean ${whole.map((each) => `"${each}"`).join(' or ')}?`;
  // The comparison is quadratic in length; no field has a name this long.
  if (name.length <= 64) {
    const nearest = closest(name, known as string[]);
    if (distance(name, nearest) <= Math.max(2, Math.floor(name.length / 2))) return `: did you mean "${nearest}"?`;
  }
  return known.length <= 12 ? `: there are ${known.join(', ')}` : '';
}

/** A name for a message: quoted, with escaped line breaks, and cut after 100 characters. */
export const quoted = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
