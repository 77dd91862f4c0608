import { distance } from 'fastest-levenshtein';

/** Returns the maximum edit distance for a suggestion. */
const farthest = (word: string): number => Math.max(2, Math.floor(word.length / 3));

/** Returns the most similar known word; null if more than a third of the word would have to change. */
export function nearest(typed: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let bestSteps = farthest(typed) + 1;
  for (const word of known) {
    // Skips words whose length alone makes them less similar than the best one, and words that share no letter.
    if (Math.abs(word.length - typed.length) >= bestSteps) continue;
    const steps = distance(typed.toLowerCase(), word.toLowerCase());
    if (steps < bestSteps && steps < word.length) [best, bestSteps] = [word, steps];
  }
  return best;
}

/** Returns at most three similar known words, the most similar first. Uses the limit of `nearest`. */
export function nearestFew(typed: string, known: readonly string[]): string[] {
  const limit = farthest(typed);
  return known
    .filter((word) => Math.abs(word.length - typed.length) <= limit)
    .map((word) => ({ word, steps: distance(typed.toLowerCase(), word.toLowerCase()) }))
    .filter(({ word, steps }) => steps <= limit && steps < word.length)
    .sort((one, other) => one.steps - other.steps)
    .slice(0, 3)
    .map(({ word }) => word);
}
