/**
 * Parses and edits the lines of an authorized_keys file. Each character of a string represents one byte (latin1), so
 * that lines in any encoding are preserved.
 */

export interface KeyLine {
  /** Options before the key, such as `command="…",no-pty`; empty if the line has none. */
  options: string;
  /** The key's type and its base64 text, separated by one space. */
  key: string;
  comment: string;
}

const keyed = /^((?:ssh|ecdsa|sk)-[A-Za-z0-9@.-]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t]+(.*))?$/;

/** Parses a line. Returns null for a line without a key: a comment, an empty line, or other text. */
export function parseKeyLine(line: string): KeyLine | null {
  const text = line.replace(/^[ \t]+/, '').replace(/[ \t\r]+$/, '');
  if (text === '' || text.startsWith('#')) return null;
  const withoutOptions = keyed.exec(text);
  if (withoutOptions !== null) return keyLine('', withoutOptions);
  const end = endOfOptions(text);
  const behind = keyed.exec(text.slice(end).replace(/^[ \t]+/, ''));
  return behind === null ? null : keyLine(text.slice(0, end), behind);
}

const keyLine = (options: string, [, type, key, comment]: RegExpExecArray): KeyLine => ({
  options,
  key: `${type} ${key}`,
  comment: comment ?? '',
});

/** Returns where the options end: as in sshd, at the first space or tab outside quotes. */
function endOfOptions(text: string): number {
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '\\' && text[i + 1] === '"') i++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && (character === ' ' || character === '\t')) return i;
  }
  return text.length;
}

/** A line with its position among the other lines, so that it can be restored there. */
export type PlacedLine = {
  text: string;
  index: number;
  previous: string | null;
  next: string | null;
};

const linesOf = (text: string): string[] => {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
};
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

/** Returns every line with this key, regardless of its options and comment. */
export function linesWith(text: string, key: string): PlacedLine[] {
  const lines = linesOf(text);
  return lines.flatMap((line, index) =>
    parseKeyLine(line)?.key === key
      ? [{ text: line, index, previous: lines[index - 1] ?? null, next: lines[index + 1] ?? null }]
      : [],
  );
}

/** Returns the keys in the text, or null if a line is neither a key nor empty. */
export function onlyKeys(text: string): string[] | null {
  const keys: string[] = [];
  for (const line of linesOf(text)) {
    const parsed = parseKeyLine(line);
    if (parsed !== null) keys.push(parsed.key);
    else if (line.trim() !== '') return null;
  }
  return keys;
}

/** Appends a key as a line. Adds a missing final line break first. */
export const added = (text: string, key: string, comment: string): string =>
  `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${key}${comment === '' ? '' : ` ${comment}`}\n`;

/** Replaces the comment of the first line with this key, and keeps its options. */
export function commented(text: string, key: string, comment: string): string {
  const [first] = linesWith(text, key);
  if (first === undefined) return text;
  const { options } = parseKeyLine(first.text) as KeyLine;
  const lines = linesOf(text);
  lines[first.index] = `${options === '' ? '' : `${options} `}${key}${comment === '' ? '' : ` ${comment}`}`;
  return ended(lines, text);
}

/**
 * Removes one line with this key, preferably one without options, because the agent does not write options.
 * @param open whether the text lacked a final line break before the agent added its line
 */
export function without(text: string, key: string, open: boolean): string {
  const found = linesWith(text, key);
  const own = found.find((line) => parseKeyLine(line.text)?.options === '') ?? found[0];
  if (own === undefined) return text;
  const lines = linesOf(text);
  lines.splice(own.index, 1);
  const rest = ended(lines, text);
  return open && own.index === lines.length && rest.endsWith('\n') ? rest.slice(0, -1) : rest;
}

export const withoutAll = (text: string, key: string): string =>
  ended(
    linesOf(text).filter((line) => parseKeyLine(line)?.key !== key),
    text,
  );

/** Restores lines as closely to their original positions as their neighbors allow. */
export function restoreLines(text: string, placed: readonly PlacedLine[]): string {
  const lines = linesOf(text);
  for (const { text: line, index, previous, next } of placed) {
    const after = previous === null ? -1 : lines.lastIndexOf(previous);
    const before = next === null ? -1 : lines.indexOf(next);
    const known = index === 0 ? 0 : after >= 0 ? after + 1 : before;
    const at = known >= 0 ? known : Math.min(index, lines.length);
    lines.splice(at, 0, line);
  }
  return ended(lines, text === '' ? '\n' : text);
}

/** Joins lines. The last line gets a line break if the previous text ended in one. */
const ended = (lines: readonly string[], before: string): string =>
  before.endsWith('\n') || lines.length === 0 ? textOf(lines) : textOf(lines).slice(0, -1);
