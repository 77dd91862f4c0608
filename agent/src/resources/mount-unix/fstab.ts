import { inBytes, insertLines, readable, removeLines, type TextLine } from '../text-edit/lines.ts';

/** Finds and edits lines in /etc/fstab. See fstab(5). */

export const fstab = '/etc/fstab';

export interface Entry {
  device: string;
  path: string;
  type: string;
  options: string;
  dump: string;
  pass: string;
}

const fields = ['device', 'path', 'type', 'options', 'dump', 'pass'] as const;

const decoded = (word: string): string =>
  readable(word.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))));
const encoded = (text: string): string =>
  inBytes(text).replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);

/** Parses a line. Returns null for a comment and an incomplete line. */
export function parseEntry(text: string): Entry | null {
  const words = text.trim().split(/[ \t]+/);
  if (words.length < 3 || words[0]?.startsWith('#') === true) return null;
  const [device = '', path = '', type = '', options = 'defaults', dump = '0', pass = '0'] = words.map(decoded);
  return { device, path: path.length > 1 ? path.replace(/\/+$/, '') : path, type, options, dump, pass };
}

type Lines = readonly { text: string }[];
const entriesWhere = (lines: Lines, isOne: (entry: Entry) => boolean): number[] =>
  lines.flatMap(({ text }, index) => {
    const entry = parseEntry(text);
    return entry !== null && isOne(entry) ? [index] : [];
  });

/** Returns the positions of the lines for a mount point. */
export const entriesAt = (path: string, lines: Lines): number[] => entriesWhere(lines, (entry) => entry.path === path);

/** Returns the positions of the lines for a swap file. */
export const swapEntries = (file: string, lines: Lines): number[] =>
  entriesWhere(lines, ({ device, type }) => type === 'swap' && device === file);

/** Returns the line with the entry's values. Preserves its spaces, and every field that already has the right value. */
function editedLine(text: string, entry: Entry): string {
  const current = parseEntry(text);
  if (current === null) return text;
  // Fields at every second position, with the spaces between them.
  const pieces = text.split(/([ \t]+)/);
  const first = pieces[0] === '' ? 2 : 0;
  const changed = fields.map((field) => field !== 'path' && current[field] !== entry[field]);
  fields.slice(0, changed.lastIndexOf(true) + 1).forEach((field, i) => {
    const at = first + 2 * i;
    // A line may end before its last fields, which then have their defaults.
    if (at >= pieces.length) pieces.push(' ', '');
    if (changed[i] === true || pieces[at] === '') pieces[at] = encoded(entry[field]);
  });
  return pieces.join('');
}

/**
 * Returns the file with a single line that replaces the given ones, in the position of the first one, or at the end.
 * @param own positions of the lines
 * @param entry null if the file must have no such line
 */
export function declaredEntries(own: readonly number[], entry: Entry | null, lines: readonly TextLine[]): TextLine[] {
  if (entry === null) return removeLines(lines, new Set(own));
  const [first, ...others] = own;
  if (first === undefined)
    return insertLines(lines, lines.length, [fields.map((field) => encoded(entry[field])).join(' ')]);
  const after = lines.map((line, index) => (index === first ? { ...line, text: editedLine(line.text, entry) } : line));
  return removeLines(after, new Set(others));
}
