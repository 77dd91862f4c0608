/** Estimates which tags fit into one line, from the lengths of their texts. All sizes are pixels. */

/** Estimated width of a letter, slightly more than most letters have at the chip's font size. */
const perCharacter = 6.6;
const padding = 12;
const gap = 4;
/** The maximum width of a chip: `max-w-40` in tag-chip.tsx. */
const maxWidth = 160;
/** Room for the counter of hidden tags, such as `+12`. */
const counterWidth = 28;

/**
 * Selects the first tag and every later one that still fits.
 * @param tags as `key=value`
 * @param room in pixels
 * @returns indexes of the selected tags: at least one, even if it has to be truncated
 */
export function tagsThatFit(tags: readonly string[], room: number): number[] {
  const widths = tags.map(({ length }) => Math.min(maxWidth, length * perCharacter + padding) + gap);
  const all = widths.reduce((sum, width) => sum + width, 0);
  if (all <= room) return [...tags.keys()];
  let left = room - counterWidth;
  return widths.flatMap((width, index) => {
    if (index > 0 && width > left) return [];
    left -= width;
    return [index];
  });
}
