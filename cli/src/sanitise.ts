/**
 * Text that agents, module authors or a server wrote is shown on somebody's terminal. Whatever could move the cursor,
 * change colours, set titles, or make text read otherwise than it is written, becomes visible as an escape instead.
 */

// C0 without tab and newline, DEL, C1; bidi marks, embeddings, overrides and isolates; the line and paragraph
// separators; what has no width and hides in names; interlinear marks; tag characters; halves of surrogate pairs.
const unsafe =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

const escapeOf = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
};

/**
 * Text of several lines: newlines and tabs stay.
 * @returns what may be written to a terminal as it is
 */
export const sanitise = (text: string): string => text.replace(/\r\n/g, '\n').replace(unsafe, escapeOf);

/** Text that has one line: newlines and tabs are escaped too, so that it cannot pretend to be a line of ours. */
export const sanitiseLine = (text: string): string =>
  text.replace(unsafe, escapeOf).replace(/[\n\t]/g, (character) => (character === '\n' ? '\\n' : '\\t'));

/** Text of several lines of which only the first stands at the margin: the others cannot pass for lines of ours. */
export const sanitiseParagraph = (text: string): string => sanitise(text.trimEnd()).replaceAll('\n', '\n  ');

/**
 * JSON for a terminal or a pipe. Parses to the same value: what `JSON.stringify` leaves as it is and a terminal would
 * act on (C1, bidi) is written as `\uXXXX`.
 */
export function toJson(value: unknown, layout: 'lines' | 'line' = 'lines'): string {
  const text = JSON.stringify(value, null, layout === 'lines' ? 2 : 0) ?? 'null';
  return text.replace(unsafe, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
