/** Pure functions that match versions against declared ranges. */

/** Returns the lower bound of a range such as `>=1.2`, or null if the text is not such a range. */
export const lowerBound = (range: string): string | null => /^>= ?(.+)$/.exec(range)?.[1] ?? null;

/**
 * Reports whether a string matches a pattern in which `*` matches any characters. Takes linear time in both lengths.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
