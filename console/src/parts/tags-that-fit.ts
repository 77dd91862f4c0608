/** Estimates from text lengths which tags fit on one line. All sizes are in pixels. */

/** Estimated character width: slightly more than the average at the chip's font size. */
const perCharacter = 6.3;
const padding = 12;
const gap = 4;
/** Maximum chip width: `max-w-40` in tag-chip.tsx. */
const maxWidth = 160;
/** Space for the number of hidden tags, such as `+12`. */
const counterWidth = 28;

/**
 * Selects the first tag and every later one that fits in the remaining space.
 * @param tags as `key=value`
 * @param available width for the tags in pixels
 * @returns indexes of the selected tags; includes the first tag even if it must be truncated
 */
export function tagsThatFit(tags: readonly string[], available: number): number[] {
  const widths = tags.map(({ length }) => Math.min(maxWidth, length * perCharacter + padding) + gap);
  const all = widths.reduce((sum, width) => sum + width, 0);
  if (all <= available) return [...tags.keys()];
  let left = available - counterWidth;
  return widths.flatMap((width, index) => {
    if (index > 0 && width > left) return [];
    left -= width;
    return [index];
  });
}
