/**
 * Escapes text from machines, module authors, or a server before it is shown on a terminal or in a log. Characters that
 * could move the cursor, change colors, set titles, or reorder text become visible escapes.
 */

// C0 except tab and newline, DEL, C1; bidi marks, embeddings, overrides and isolates; line and paragraph separators;
// zero-width characters; interlinear marks; tag characters; lone surrogates.
const unsafe =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

const escapeOf = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
};

/** Escapes multi-line text. Keeps newlines and tabs. */
export const visible = (text: string): string => text.replace(unsafe, escapeOf);

const printable = /^[ -~]*$/;

/** Escapes single-line text, including newlines and tabs, so that the text cannot imitate another line. */
export const visibleLine = (text: string): string =>
  printable.test(text) ? text : visible(text).replace(/[\n\t]/g, (character) => (character === '\n' ? '\\n' : '\\t'));

const unitsOf = (character: string): string =>
  [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');

/**
 * Escapes unsafe characters that `JSON.stringify` leaves in JSON (C1, bidi) as `\\uXXXX`. The result parses to the same
 * value.
 */
export const visibleJson = (json: string): string => json.replace(unsafe, unitsOf);

/**
 * Escapes JSON whose strings a program writes to a terminal after parsing it.
 * @returns JSON whose parsed strings have visible escapes instead of unsafe characters, except for newlines and tabs
 */
export const visibleOnceParsed = (json: string): string =>
  visibleJson(json).replace(
    /\\(?:(u00(?:0[0-8b-f]|1[0-9a-f]|[89][0-9a-f]|7f|ad)|u[1-9a-f][0-9a-f]{3}|[bfr])|.)/gi,
    (whole, named) => (named === undefined ? whole : `\\\\${named}`),
  );
