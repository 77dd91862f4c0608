/** How many tags stand in one line, decided on their texts. Pure. */

/** Pixels, of text as small as that of a chip; a little more than most letters take. */
const perCharacter = 6.6;
const padding = 12;
const gap = 4;
/** As wide as one gets. */
const widest = 160;
/** For `+12`. */
const restWidth = 28;

/**
 * The first, and each after it that there is still room for.
 * @param tags as `key=value`; @param room pixels
 * @returns their places; one at least, which is cut where even that is too much
 */
export function tagsThatFit(tags: readonly string[], room: number): number[] {
  const widths = tags.map(({ length }) => Math.min(widest, length * perCharacter + padding) + gap);
  const all = widths.reduce((sum, width) => sum + width, 0);
  if (all <= room) return [...tags.keys()];
  let left = room - restWidth;
  return widths.flatMap((width, index) => {
    if (index > 0 && width > left) return [];
    left -= width;
    return [index];
  });
}
