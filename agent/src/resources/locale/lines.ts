import { canonicalLocale } from '@muster/protocol/module';
import { insertLines, removeLines, type TextLine } from '../text-edit/lines.ts';

/** Finds and edits lines of /etc/locale.gen and of the file with the default locale. See locale.gen(5) and locale(5). */

export const localeGen = '/etc/locale.gen';

type Lines = readonly { text: string }[];

interface Entry {
  name: string;
  charset: string;
  /** Whether the line is a comment, so that locale-gen ignores it. */
  isComment: boolean;
}

function parseEntry(text: string): Entry | null {
  const [, mark, name, charset] = /^[ \t]*(#?)[ \t]*([^ \t#]+)[ \t]+([^ \t#]+)[ \t]*$/.exec(text) ?? [];
  return name === undefined || charset === undefined ? null : { name, charset, isComment: mark === '#' };
}

/** Returns the positions of the lines for a locale, including lines that are comments. */
export const entriesOf = (name: string, lines: Lines): number[] =>
  lines.flatMap(({ text }, index) => {
    const entry = parseEntry(text);
    return entry !== null && canonicalLocale(entry.name) === canonicalLocale(name) ? [index] : [];
  });

/**
 * Returns the locale's entries that are not comments, such as `de_DE.UTF-8 UTF-8`, joined with commas; null if there
 * are none.
 */
export function activeEntries(lines: Lines): string | null {
  const active = lines.map(({ text }) => parseEntry(text)).filter((entry) => entry?.isComment === false);
  return active.length === 0 ? null : active.map((entry) => `${entry?.name} ${entry?.charset}`).join(', ');
}

/**
 * Returns the file with exactly one entry for the locale. If it exists as a comment, removes the comment mark; if it is
 * new, adds it at the end. Other entries of the locale become comments.
 * @param charset null if the locale must have no entry
 */
export function declaredEntry(name: string, charset: string | null, lines: readonly TextLine[]): TextLine[] {
  const own = entriesOf(name, lines).map((index) => ({ index, ...(parseEntry(lines[index]?.text ?? '') as Entry) }));
  const right = charset === null ? [] : own.filter((entry) => entry.charset === charset);
  const kept = right.find(({ isComment }) => !isComment) ?? right[0];
  const after = lines.map((line, index) => {
    const entry = own.find((each) => each.index === index);
    if (entry === undefined || entry.isComment !== (entry === kept)) return line;
    return { ...line, text: entry === kept ? line.text.replace(/^[ \t]*#[ \t]*/, '') : `# ${line.text}` };
  });
  return charset === null || kept !== undefined ? after : insertLines(after, after.length, [`${name} ${charset}`]);
}

const setting = /^[ \t]*(?:export[ \t]+)?LANG=(.*)$/;

/** Returns the positions of the lines that set LANG. */
export const langLines = (lines: Lines): number[] =>
  lines.flatMap(({ text }, index) => (setting.test(text) ? [index] : []));

/** Returns the value of LANG; null if no line sets it. Of several lines, the last one applies. */
export function langIn(lines: Lines): string | null {
  const last = lines.findLast(({ text }) => setting.test(text));
  const value = last === undefined ? '' : (setting.exec(last.text)?.[1]?.trim() ?? '');
  return value === '' ? null : value.replace(/^(["'])(.*)\1$/, '$2');
}

/**
 * Returns the file with exactly one line that sets LANG, in the position of the first one or at the end.
 * @param name null if LANG must not be set
 */
export function declaredLang(name: string | null, lines: readonly TextLine[]): TextLine[] {
  const [first, ...others] = langLines(lines);
  if (name === null) return removeLines(lines, new Set(langLines(lines)));
  if (first === undefined) return insertLines(lines, lines.length, [`LANG=${name}`]);
  return removeLines(
    lines.map((line, index) => (index === first ? { ...line, text: `LANG=${name}` } : line)),
    new Set(others),
  );
}
