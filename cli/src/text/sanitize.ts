import { visible, visibleJson, visibleLine } from '@muster/protocol';

/**
 * Text that agents, module authors or a server wrote is shown on somebody's terminal. Whatever could move the cursor,
 * change colours, set titles, or make text read otherwise than it is written, becomes visible as an escape instead.
 */

/**
 * Text of several lines: newlines and tabs stay.
 * @returns what may be written to a terminal as it is
 */
export const sanitise = (text: string): string => visible(text.replace(/\r\n/g, '\n'));

/** Text that has one line: newlines and tabs are escaped too, so that it cannot pretend to be a line of ours. */
export const sanitiseLine = visibleLine;

/** Text of several lines of which only the first stands at the margin: the others cannot pass for lines of ours. */
export const sanitiseParagraph = (text: string): string => sanitise(text.trimEnd()).replaceAll('\n', '\n  ');

/**
 * JSON for a terminal or a pipe. Parses to the same value: what `JSON.stringify` leaves as it is and a terminal would
 * act on (C1, bidi) is written as `\uXXXX`.
 */
export function toJson(value: unknown, layout: 'lines' | 'line' = 'lines'): string {
  const text = JSON.stringify(value, null, layout === 'lines' ? 2 : 0) ?? 'null';
  return visibleJson(text);
}
