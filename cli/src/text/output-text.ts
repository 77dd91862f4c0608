/** Number of characters from the end of the earlier output to search for in the new output. */
const keyLength = 256;

/**
 * Returns the part of a script's output that has not been shown yet. The output of a running script contains only its
 * last part; finished output may lack its middle.
 * @param before the output that was already shown; empty if none
 */
export function newText(before: string, now: string): string {
  if (now === before) return '';
  if (now.startsWith(before)) return now.slice(before.length);
  const key = before.slice(-keyLength);
  const at = now.lastIndexOf(key);
  if (at >= 0) return now.slice(at + key.length);
  return `${before.endsWith('\n') ? '' : '\n'}[…]\n${now}`;
}

/** Returns the last line that is not blank. */
export const lastLine = (text: string): string =>
  text
    .split(/[\r\n]/)
    .findLast((line) => line.trim() !== '')
    ?.trim() ?? '';

/** Returns the last lines that are not blank. */
export const lastLines = (text: string, maxLines: number): string[] =>
  text
    .split(/[\r\n]/)
    .filter((line) => line.trim() !== '')
    .slice(-maxLines);
