/** How many tags stand in one line, decided on their texts. Pure. */

/** Pixels, of text as small as that of a chip; a little more than most letters take. */
const perCharacter = 6.6;
const padding = 12;
const gap = 4;
/** As wide as one gets. */
const widest = 160;
/** For `+12`. */
const restWidth = 28;

/** @param tags as `key=value`; @param room pixels. @returns at least one, which is cut where even that is too much */
export function tagsThatFit(tags: readonly string[], room: number): number {
  let used = 0;
  for (const [index, { length }] of tags.entries()) {
    used += Math.min(widest, length * perCharacter + padding) + gap;
    const rest = index + 1 < tags.length ? restWidth : 0;
    if (used + rest > room) return Math.max(1, index);
  }
  return tags.length;
}
