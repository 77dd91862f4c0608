import { closest, distance } from 'fastest-levenshtein';

/** Maximum number of names in a suggestion. */
const maxNames = 12;

/**
 * Suggests known names for an unknown name.
 * @returns text that completes a sentence: `: did you mean "x"?`, the known names, or an empty string
 */
export function suggestion(name: string, known: readonly string[]): string {
  if (known.length === 0) return '';
  // A part of a compound name takes precedence over similar spellings: `user` suggests user-unix, `apt` package-apt.
  const whole = known.filter((each) => each.startsWith(`${name}-`) || each.endsWith(`-${name}`));
  if (name !== '' && whole.length > 0 && whole.length <= maxNames)
    return `: did you mean ${whole.map((each) => `"${each}"`).join(' or ')}?`;
  // Limited, because the comparison is quadratic in the length, and no known name is longer.
  if (name.length <= 64) {
    const nearest = closest(name, known as string[]);
    if (distance(name, nearest) <= Math.max(2, Math.floor(name.length / 2))) return `: did you mean "${nearest}"?`;
  }
  return known.length <= maxNames ? `: use one of ${known.join(', ')}` : '';
}

/** Quotes a name for a message, escapes its line breaks, and truncates it to 100 characters. */
export const quoted = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
