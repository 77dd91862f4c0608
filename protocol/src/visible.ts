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

/** @returns text of several lines that is safe to write to a terminal; newlines and tabs stay */
export const visible = (text: string): string => text.replace(unsafe, escapeOf);

/** @returns text of one line: newlines and tabs are escaped too, so that the text cannot imitate another line */
export const visibleLine = (text: string): string =>
  visible(text).replace(/[\n\t]/g, (character) => (character === '\n' ? '\\n' : '\\t'));

const unitsOf = (character: string): string =>
  [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
    .join('');

/**
 * @returns JSON that parses to the same value; unsafe characters that `JSON.stringify` does not escape (C1, bidi)
 * become `\\uXXXX`
 */
export const visibleJson = (json: string): string => json.replace(unsafe, unitsOf);

/**
 * For JSON whose strings a program writes to a terminal after parsing.
 * @returns JSON that parses to a value in whose strings unsafe characters are visible escapes; newlines and tabs stay
 */
export const visibleOnceParsed = (json: string): string =>
  visibleJson(json).replace(
    /\\(?:(u00(?:0[0-8b-f]|1[0-9a-f]|[89][0-9a-f]|7f|ad)|u[1-9a-f][0-9a-f]{3}|[bfr])|.)/gi,
    (whole, named) => (named === undefined ? whole : `\\\\${named}`),
  );
