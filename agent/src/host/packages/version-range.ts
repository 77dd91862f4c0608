/** Declared versions that stand for more than one. Pure. */

/** The lower bound that is declared as `>=1.2`; null when none is. */
export const lowerBound = (wanted: string): string | null => /^>= ?(.+)$/.exec(wanted)?.[1] ?? null;

/** Whether a text is what a pattern says, in which `*` stands for any characters. Takes time in proportion to both. */
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
