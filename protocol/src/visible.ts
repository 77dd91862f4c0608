/**
 * Text that machines, module authors or a server wrote is shown on somebody's terminal or in a log. Whatever could move the
 * cursor, change colors, set titles, or make text read otherwise than it is written, becomes visible as an escape instead.
 */

// C0 without tab and newline, DEL, C1; bidi marks, embeddings, overrides and isolates; the line and paragraph
// separators; what has no width and hides in names; interlinear marks; tag characters; halves of surrogate pairs.
const unsafe =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

const escapeOf = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
};

/** @returns text of several lines that may be written to a terminal as it is; newlines and tabs stay */
export const visible = (text: string): string => text.replace(unsafe, escapeOf);

/** @returns text of one line: newlines and tabs are escaped too, so that it cannot pretend to be another line */
export const visibleLine = (text: string): string =>
  visible(text).replace(/[\n\t]/g, (character) => (character === '\n' ? '\\n' : '\\t'));

const unitsOf = (character: string): string =>
  [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');

/** @returns JSON that parses to the same value, with what `JSON.stringify` leaves as it is (C1, bidi) as `\uXXXX` */
export const visibleJson = (json: string): string => json.replace(unsafe, unitsOf);

/**
 * For JSON whose strings a program writes to a terminal after it has parsed them.
 * @returns JSON that parses to a value whose strings name every unsafe character; newlines and tabs stay
 */
export const visibleOnceParsed = (json: string): string =>
  visibleJson(json).replace(
    /\\(?:(u00(?:0[0-8b-f]|1[0-9a-f]|[89][0-9a-f]|7f|ad)|u[1-9a-f][0-9a-f]{3}|[bfr])|.)/gi,
    (whole, named) => (named === undefined ? whole : `\\\\${named}`),
  );
