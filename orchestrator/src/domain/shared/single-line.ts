/** Text from machines for people: no line breaks, no control characters, none that reorder or hide what stands beside them; not too long. */
export function oneLine(text: string, longest: number): string {
  const clean = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/\p{Cf}/gu, '');
  const characters = [...clean];
  return characters.length <= longest ? clean : `${characters.slice(0, longest - 1).join('')}…`;
}
