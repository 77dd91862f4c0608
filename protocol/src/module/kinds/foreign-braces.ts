/** Opening braces of Jinja and similar languages. Scripts may contain them as input for other programs. */
const braces = /(?<![$])\{\{|\{%/;

/** Returns the message for text with the braces of Jinja or a similar language; undefined if it has none. */
export function foreignBraces(text: string): string | undefined {
  const found = braces.exec(text)?.[0];
  if (found === undefined) return undefined;
  const form =
    found === '{%'
      ? 'for a loop or a condition, write ${{ for x in … }} or ${{ if … }}'
      : 'to insert a value, write ${{ … }}';
  return `"${found}" has no meaning here: ${form}`;
}
