/** Characters at the end of what was shown by which its place in what comes next is found. */
const keyLength = 256;

/**
 * What is new in the output of a script that was asked for again. While it runs only the end of it is there, and at its
 * end what is in the middle may have been cut.
 * @param before what was shown; empty: nothing was
 */
export function newText(before: string, now: string): string {
  if (now === before) return '';
  if (now.startsWith(before)) return now.slice(before.length);
  const key = before.slice(-keyLength);
  const at = now.lastIndexOf(key);
  if (at >= 0) return now.slice(at + key.length);
  return `${before.endsWith('\n') ? '' : '\n'}[…]\n${now}`;
}

/** The last line that has anything on it. */
export const lastLine = (text: string): string =>
  text
    .split(/[\r\n]/)
    .findLast((line) => line.trim() !== '')
    ?.trim() ?? '';

/** The last lines that have anything on them. */
export const lastLines = (text: string, most: number): string[] =>
  text
    .split(/[\r\n]/)
    .filter((line) => line.trim() !== '')
    .slice(-most);
