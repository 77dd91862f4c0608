import { distance } from 'fastest-levenshtein';

/**
 * The known word that was probably meant.
 * @returns null when none is near: more than a third of it would have to change
 */
export function nearest(wanted: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const word of known) {
    // Far longer or shorter words need no measuring; and a distance may not use up the whole of a short word.
    if (Math.abs(word.length - wanted.length) >= least) continue;
    const steps = distance(wanted.toLowerCase(), word.toLowerCase());
    if (steps < least && steps < word.length) [best, least] = [word, steps];
  }
  return best;
}
