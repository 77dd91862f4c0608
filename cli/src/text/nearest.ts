import { distance } from 'fastest-levenshtein';

/** Returns the maximum edit distance for a suggestion. */
const farthest = (wanted: string): number => Math.max(2, Math.floor(wanted.length / 3));

/** Returns the known word that is most similar; null if more than a third of the word would have to change. */
export function nearest(wanted: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = farthest(wanted) + 1;
  for (const word of known) {
    // Skip words whose length alone makes them less similar than the best one, and words that share no letter.
    if (Math.abs(word.length - wanted.length) >= least) continue;
    const steps = distance(wanted.toLowerCase(), word.toLowerCase());
    if (steps < least && steps < word.length) [best, least] = [word, steps];
  }
  return best;
}

/** Returns at most `most` similar known words, the most similar first. Uses the limit of `nearest`. */
export function nearestFew(wanted: string, known: readonly string[], most = 3): string[] {
  const limit = farthest(wanted);
  return known
    .filter((word) => Math.abs(word.length - wanted.length) <= limit)
    .map((word) => ({ word, steps: distance(wanted.toLowerCase(), word.toLowerCase()) }))
    .filter(({ word, steps }) => steps <= limit && steps < word.length)
    .sort((one, other) => one.steps - other.steps)
    .slice(0, most)
    .map(({ word }) => word);
}
