/**
 * Makes text from machines safe to display: removes line breaks, control characters, and characters that reorder or
 * hide other characters, and limits the length.
 */
export function oneLine(text: string, longest: number): string {
  const clean = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/\p{Cf}/gu, '');
  const characters = [...clean];
  return characters.length <= longest ? clean : `${characters.slice(0, longest - 1).join('')}…`;
}
