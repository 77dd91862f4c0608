import { visible, visibleJson, visibleLine } from '@muster/protocol';

/**
 * Text of agents, module authors, or a server is shown on a terminal. Everything that could move the cursor, change
 * colors, set titles, or reorder text becomes a visible escape.
 */

/**
 * For text of several lines: keeps newlines and tabs.
 * @returns text that is safe to write to a terminal
 */
export const sanitise = (text: string): string => visible(text.replace(/\r\n/g, '\n'));

/** For text of one line: also escapes newlines and tabs, so that it cannot imitate a line of the program. */
export const sanitiseLine = visibleLine;

/** Indents all lines except the first, so that they cannot imitate lines of the program. */
export const sanitiseParagraph = (text: string): string => sanitise(text.trimEnd()).replaceAll('\n', '\n  ');

/**
 * JSON for a terminal or a pipe. Parses to the same value: characters that `JSON.stringify` leaves and a terminal would
 * act on (C1, bidi) are written as `\uXXXX`.
 */
export function toJson(value: unknown, layout: 'lines' | 'line' = 'lines'): string {
  const text = JSON.stringify(value, null, layout === 'lines' ? 2 : 0) ?? 'null';
  return visibleJson(text);
}
