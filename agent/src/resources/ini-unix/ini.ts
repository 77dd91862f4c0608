import { insertLines, removeLines, type TextLine } from '../text-edit/lines.ts';

/**
 * Finds and edits one setting in the text of an INI file: `[section]` lines, and `key = value` or `key: value` lines.
 * Comments begin with `#` or `;`. Programs read INI files differently, so the text after the separator is the value,
 * including quotes and comments. All strings are encoded as in `TextLine`.
 */

/** The section and key of a setting. A setting without a section belongs above the first section. */
export interface Place {
  readonly section: string | null;
  readonly key: string;
}

export interface Setting {
  readonly index: number;
  readonly text: string;
  /** Null if the line has only the key. */
  readonly value: string | null;
  /** Whether the value continues on the next line. */
  readonly continues: boolean;
}

interface Region {
  /** Index of the first line below the section line. */
  readonly start: number;
  readonly end: number;
}

/** Returns the name of the section that starts at a line. Takes linear time, because others may write the file. */
function sectionOf(text: string): string | null {
  const line = text.trim();
  const end = line.indexOf(']');
  if (!line.startsWith('[') || end === -1) return null;
  const rest = line.slice(end + 1).trimStart();
  return rest === '' || isComment(rest) ? line.slice(1, end).trim() : null;
}

const isBlank = ({ text }: TextLine): boolean => text.trim() === '';
const isComment = (text: string): boolean => /^\s*[#;]/.test(text);
/** Returns the indentation and the separator of a line with any setting; null for other lines. Takes linear time. */
function styleOf(text: string): { indentation: string; separator: string } | null {
  const content = text.trimStart();
  const sign = content.search(/[=:]/);
  if (sign <= 0 || /^[#;[]/.test(content)) return null;
  const key = content.slice(0, sign).trimEnd();
  if (key === '') return null;
  const after = content.slice(sign + 1);
  const blanks = after.length - after.trimStart().length;
  return {
    indentation: text.slice(0, text.length - content.length),
    separator: `${content.slice(key.length, sign + 1)}${after.slice(0, blanks)}`,
  };
}

/** Returns the parts of the file that belong to a section. */
function regionsOf(lines: readonly TextLine[], section: string | null): Region[] {
  const regions: Region[] = [];
  let start = section === null ? 0 : null;
  for (const [index, { text }] of lines.entries()) {
    const found = sectionOf(text);
    if (found === null) continue;
    if (start !== null) regions.push({ start, end: index });
    start = found === section ? index + 1 : null;
  }
  if (start !== null) regions.push({ start, end: lines.length });
  return regions;
}

/** Returns the part of a line after the key: the separator and the value. Null if the line has another key. */
function behindKey(text: string, key: string): { separator: string; value: string | null } | null {
  const content = text.trimStart();
  if (!content.startsWith(key)) return null;
  const rest = content.slice(key.length);
  if (rest.trim() === '') return { separator: '', value: null };
  const separator = /^\s*[=:][^\S\r\n]*/.exec(rest)?.[0];
  return separator === undefined ? null : { separator, value: rest.slice(separator.length).trimEnd() };
}

/** Returns the lines that contain the setting, in file order. */
export function settingsIn(lines: readonly TextLine[], { section, key }: Place): Setting[] {
  return regionsOf(lines, section).flatMap(({ start, end }) =>
    lines.slice(start, end).flatMap(({ text }, offset): Setting[] => {
      const found = isComment(text) ? null : behindKey(text, key);
      if (found === null) return [];
      const next = lines[start + offset + 1]?.text ?? '';
      const isContinued = /^\s+\S/.test(next) && !/^\s/.test(text) && !isComment(next) && styleOf(next) === null;
      const continues = isContinued || found.value?.endsWith('\\') === true;
      return [{ index: start + offset, text, value: found.value, continues }];
    }),
  );
}

export const hasSection = (lines: readonly TextLine[], { section }: Place): boolean =>
  section === null || lines.some(({ text }) => sectionOf(text) === section);

/** Returns the index at which a new setting of an existing section is inserted: below its last setting. */
export function insertionIndex(lines: readonly TextLine[], { section }: Place): number {
  const region = regionsOf(lines, section).at(-1);
  if (region === undefined) return lines.length;
  for (let index = region.end; index > region.start; index--) {
    const line = lines[index - 1] as TextLine;
    if (!isBlank(line) && !isComment(line.text)) return index;
  }
  if (section !== null) return region.start;
  for (let index = region.end; index > 0; index--) if (!isBlank(lines[index - 1] as TextLine)) return index;
  return 0;
}

/** Reports whether a new section needs an empty line above. */
export const needsBlankLine = (lines: readonly TextLine[]): boolean => {
  const last = lines.at(-1);
  return last !== undefined && !isBlank(last);
};

/** Returns the indentation and the separator of the settings around a new setting. */
function styleAt(lines: readonly TextLine[], place: Place): { indentation: string; separator: string } {
  const inside = regionsOf(lines, place.section).flatMap(({ start, end }) => lines.slice(start, end));
  const style = [...lines, ...inside].map(({ text }) => styleOf(text)).findLast((found) => found !== null);
  return style ?? { indentation: '', separator: ' = ' };
}

/** Returns the text of a setting's line, in the style of the file. */
function textOfSetting(lines: readonly TextLine[], place: Place, value: string | null, old: string | null): string {
  const style = styleAt(lines, place);
  if (old === null) return `${style.indentation}${place.key}${value === null ? '' : `${style.separator}${value}`}`;
  const indentation = old.slice(0, old.length - old.trimStart().length);
  const separator = behindKey(old, place.key)?.separator || style.separator;
  return `${indentation}${place.key}${value === null ? '' : `${separator}${value}`}`;
}

/** Returns the file with the setting. */
export function withSetting(lines: readonly TextLine[], place: Place, value: string | null): TextLine[] {
  const [found] = settingsIn(lines, place);
  const text = textOfSetting(lines, place, value, found?.text ?? null);
  if (found !== undefined) return lines.map((line, index) => (index === found.index ? { ...line, text } : line));
  if (hasSection(lines, place)) return insertLines(lines, insertionIndex(lines, place), [text]);
  const above = needsBlankLine(lines) ? [''] : [];
  return insertLines(lines, lines.length, [...above, `[${place.section}]`, text]);
}

/** Returns the file without the setting. */
export const withoutSetting = (lines: readonly TextLine[], place: Place): TextLine[] =>
  removeLines(lines, new Set(settingsIn(lines, place).map(({ index }) => index)));

/**
 * Returns the file without a section that has no settings and no comments.
 * @param hasBlank whether to remove the empty line above
 */
export function withoutEmptySection(lines: readonly TextLine[], { section }: Place, hasBlank: boolean): TextLine[] {
  const region = regionsOf(lines, section).at(-1);
  if (section === null || region === undefined) return [...lines];
  if (!lines.slice(region.start, region.end).every(isBlank)) return [...lines];
  const header = region.start - 1;
  const above = lines[header - 1];
  const removed = hasBlank && above !== undefined && isBlank(above) ? [header - 1, header] : [header];
  return removeLines(lines, new Set(removed));
}
