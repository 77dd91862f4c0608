import { visible, visibleJson, visibleLine } from '@muster/protocol';

/**
 * Escapes untrusted text from agents, module authors, or a server for a terminal. Everything that could move the
 * cursor, change colors, set titles, or reorder text becomes a visible escape.
 */

/** Escapes multi-line text, and preserves newlines and tabs. */
export const sanitise = (text: string): string => visible(text.replace(/\r\n/g, '\n'));

/** Escapes single-line text, including newlines and tabs, so that it cannot imitate a line of the program's output. */
export const sanitiseLine = visibleLine;

/** Escapes text and indents all lines except the first, so that they cannot imitate lines of the program's output. */
export const sanitiseParagraph = (text: string): string => sanitise(text.trimEnd()).replaceAll('\n', '\n  ');

/**
 * Formats JSON for a terminal or a pipe. The result parses to the same value: characters that `JSON.stringify` leaves
 * unescaped but a terminal would interpret (C1, bidi) are written as `\uXXXX`.
 */
export function toJson(value: unknown, layout: 'lines' | 'line' = 'lines'): string {
  const text = JSON.stringify(value, null, layout === 'lines' ? 2 : 0) ?? 'null';
  return visibleJson(text);
}
