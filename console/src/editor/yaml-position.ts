/**
 * Determines what the cursor position in a YAML document may contain. A document is rarely valid while it is being
 * typed, so this reads only its structure: indentation, and brackets in flow style (YAML 1.2, chapter 7).
 */

export type Step = string | number;

export interface Position {
  /** Path of the value, or of the mapping whose key is being typed. */
  readonly path: readonly Step[];
  /**
   * `open`: a key or a value may start here; the schema decides. `value`: the value of a key. `text`: inside a block
   * scalar.
   */
  readonly kind: 'open' | 'value' | 'text';
  /** Start offset of the word being typed. */
  readonly from: number;
  /** Keys that the mapping already contains. */
  readonly present: readonly string[];
  readonly flow: boolean;
  /** Start column of the word being typed. */
  readonly column: number;
}

interface MapFrame {
  type: 'map';
  indent: number;
  flow: boolean;
  key: string | null;
  keys: string[];
  /** Whether the current key already has a value on its line. */
  filled: boolean;
}
interface SeqFrame {
  type: 'seq';
  indent: number;
  flow: boolean;
  index: number;
  filled: boolean;
}
type Frame = MapFrame | SeqFrame;

const keyForm = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'{}[\],&*!|>%@`-][^:]*?|-[^\s:][^:]*?)\s*:(?=\s|$)/;
const unquoted = (key: string): string => (/^(["']).*\1$/s.test(key) ? key.slice(1, -1) : key);
const indentOf = (line: string): number => line.length - line.trimStart().length;

class ShapeReader {
  readonly frames: Frame[] = [];
  /** Lines that are indented more than this belong to the current block scalar; null outside a block scalar. */
  textIndent: number | null = null;
  /** Quote character of the unclosed quoted string, or null. */
  quote: string | null = null;
  /** Word being typed in flow style. `wordFrom` is its offset. */
  word = '';
  wordFrom = 0;

  get #top(): Frame | undefined {
    return this.frames.at(-1);
  }

  get inFlow(): boolean {
    return this.#top?.flow === true;
  }

  get path(): Step[] {
    return this.frames.flatMap<Step>((frame) =>
      frame.type === 'seq' ? [frame.index] : frame.key === null ? [] : [frame.key],
    );
  }

  /**
   * Reads a line, or the part of it before the cursor.
   * @param at start offset of the line
   */
  line(line: string, at: number): void {
    if (this.quote !== null || this.inFlow) {
      this.#flow(line, 0, at);
      return;
    }
    const indent = indentOf(line);
    if (this.textIndent !== null) {
      if (line.trim() === '' || indent > this.textIndent) return;
      this.textIndent = null;
    }
    if (/^(---|\.\.\.)(\s|$)/.test(line)) {
      this.frames.length = 0;
      return;
    }
    const { column, rest } = this.dashes(line);
    if (rest === '' || rest.startsWith('#')) return;
    const key = keyForm.exec(rest);
    if (key === null) {
      this.#value(line, column, at);
      return;
    }
    this.enterMap(column, unquoted(key[1] as string));
    this.#value(line, column + key[0].length, at);
  }

  /** Reads the list dashes at the start of a line. */
  dashes(line: string): { column: number; rest: string; any: boolean } {
    let column = indentOf(line);
    let any = false;
    for (;;) {
      const dash = /^-(\s+|$)/.exec(line.slice(column));
      if (dash === null) return { column, rest: line.slice(column), any };
      any = true;
      this.#enterSeq(column);
      column += dash[0].length;
    }
  }

  /**
   * Closes the mappings and lists that cannot continue at this column.
   * @returns the innermost mapping or list that remains open
   */
  leave(column: number): Frame | undefined {
    for (let top = this.#top; top !== undefined; top = this.#top) {
      if (top.indent > column || (top.type === 'seq' && top.indent === column)) this.frames.pop();
      else break;
    }
    return this.#top;
  }

  #enterSeq(column: number): void {
    while (this.frames.length > 0 && (this.#top as Frame).indent > column) this.frames.pop();
    const top = this.#top;
    if (top?.type === 'seq' && top.indent === column) {
      top.index++;
      top.filled = false;
    } else this.frames.push({ type: 'seq', indent: column, flow: false, index: 0, filled: false });
  }

  enterMap(column: number, key: string): void {
    const top = this.leave(column);
    if (top?.type === 'map' && top.indent === column) {
      top.key = key;
      top.keys.push(key);
      top.filled = false;
    } else this.frames.push({ type: 'map', indent: column, flow: false, key, keys: [key], filled: false });
  }

  /** Reads the value that starts at or after column `from`. */
  #value(line: string, from: number, at: number): void {
    const skipped = /^\s*(?:[&!]\S*\s+)*/.exec(line.slice(from))?.[0].length ?? 0;
    const start = from + skipped;
    const first = line[start];
    const top = this.#top;
    if (first === undefined || first === '#') return;
    if (top !== undefined) top.filled = true;
    if (first === '|' || first === '>') this.textIndent = top?.indent ?? -1;
    else if (first === '{' || first === '[' || first === '"' || first === "'") this.#flow(line, start, at);
  }

  #push(frame: Frame): void {
    this.frames.push(frame);
    this.word = '';
  }

  #flow(line: string, start: number, at: number): void {
    if (this.word !== '') this.word += ' ';
    for (let index = start; index < line.length; index++) {
      const character = line[index] as string;
      if (this.quote !== null) {
        if (character === '\\' && this.quote === '"') index++;
        else if (character === this.quote) this.quote = null;
        else this.word += character;
        if (this.quote === null && !this.inFlow) return;
        continue;
      }
      const top = this.#top;
      if (character === '"' || character === "'") {
        if (this.word === '') {
          this.quote = character;
          this.wordFrom = at + index + 1;
        } else this.word += character;
      } else if (character === '#' && (index === 0 || /\s/.test(line[index - 1] as string))) return;
      else if (character === '{')
        this.#push({ type: 'map', indent: Infinity, flow: true, key: null, keys: [], filled: false });
      else if (character === '[') this.#push({ type: 'seq', indent: Infinity, flow: true, index: 0, filled: false });
      else if (character === '}' || character === ']') {
        this.frames.pop();
        this.word = '';
        const outer = this.#top;
        if (outer !== undefined) outer.filled = true;
        if (!this.inFlow) return;
      } else if (character === ',') {
        if (top?.type === 'seq') {
          top.index++;
          top.filled = false;
        } else if (top !== undefined) {
          if (top.key === null && this.word.trim() !== '') top.keys.push(this.word.trim());
          top.key = null;
          top.filled = false;
        }
        this.word = '';
      } else if (
        character === ':' &&
        top?.type === 'map' &&
        top.key === null &&
        /^[\s,{}[\]]?$/.test(line[index + 1] ?? '')
      ) {
        top.key = this.word.trim();
        top.keys.push(top.key);
        this.word = '';
      } else if (this.word !== '' || !/\s/.test(character)) {
        if (this.word === '') this.wordFrom = at + index;
        this.word += character;
      }
    }
  }
}

/** Returns the keys of a block mapping on the following lines. */
function keysBelow(text: string, from: number, column: number): string[] {
  const keys: string[] = [];
  let at = text.indexOf('\n', from) + 1;
  while (at > 0 && at < text.length) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    if (line.trim() !== '' && !line.trimStart().startsWith('#')) {
      const indent = indentOf(line);
      if (indent < column) break;
      if (indent === column) {
        const key = keyForm.exec(line.slice(column));
        if (key === null) break;
        keys.push(unquoted(key[1] as string));
      }
    }
    at = end < 0 ? 0 : end + 1;
  }
  return keys;
}

/**
 * Returns the position in the document's structure at this offset, or null if nothing can be proposed there, such as in
 * a comment.
 */
export function positionAt(text: string, offset: number): Position | null {
  const reader = new ShapeReader();
  let at = 0;
  for (let end = text.indexOf('\n', at); end >= 0 && end < offset; end = text.indexOf('\n', at)) {
    reader.line(text.slice(at, end), at);
    at = end + 1;
  }
  const line = text.slice(at, offset);
  if (reader.quote === null && !reader.inFlow) {
    const position = blockPosition(reader, text, line, at, offset);
    if (position !== undefined) return position;
  }
  reader.line(line, at);
  return flowPosition(reader, offset, at);
}

function flowPosition(reader: ShapeReader, offset: number, lineAt: number): Position | null {
  const top = reader.frames.at(-1);
  const from = reader.word === '' && reader.quote === null ? offset : reader.wordFrom;
  const common = { from, flow: true, column: from - lineAt } as const;
  if (reader.quote !== null && !reader.inFlow) return { path: reader.path, kind: 'value', present: [], ...common };
  if (top === undefined || !top.flow) return null;
  if (top.type === 'seq') return { path: reader.path, kind: 'open', present: [], ...common };
  if (top.key === null) return { path: reader.path, kind: 'open', present: [...top.keys], ...common };
  return { path: reader.path, kind: 'value', present: [], ...common };
}

/** Returns undefined if the line opens a flow collection before the cursor. */
function blockPosition(
  reader: ShapeReader,
  text: string,
  line: string,
  at: number,
  offset: number,
): Position | null | undefined {
  const blank = line.trim() === '';
  if (reader.textIndent !== null) {
    if (blank ? line.length > reader.textIndent : indentOf(line) > reader.textIndent)
      return { path: reader.path, kind: 'text', from: offset, present: [], flow: false, column: line.length };
    reader.textIndent = null;
  }
  if (/(^|\s)#/.test(line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, ''))) return null;
  const lead = /^\s*(?:-(?:\s+|$))*/.exec(line)?.[0].length ?? 0;
  const key = keyForm.exec(line.slice(lead));
  const keyEnd = lead + (key?.[0].length ?? 0);
  const valueAt = keyEnd + indentOf(line.slice(keyEnd));
  if (/^[{["'|>]/.test(line.slice(valueAt))) return undefined;
  const { column, any } = reader.dashes(line);
  if (key !== null) {
    // A colon terminates a key only if whitespace follows.
    if (line.length === keyEnd) return null;
    reader.enterMap(column, unquoted(key[1] as string));
    return { path: reader.path, kind: 'value', from: at + valueAt, present: [], flow: false, column: valueAt };
  }
  const open = (path: readonly Step[], present: readonly string[]): Position => ({
    path,
    kind: 'open',
    from: at + column,
    present,
    flow: false,
    column,
  });
  if (any) return open(reader.path, []);
  const top = reader.leave(column);
  if (top === undefined) return column === 0 ? open([], keysBelow(text, offset, 0)) : null;
  if (top.type === 'seq') return top.filled ? null : open(reader.path, []);
  if (top.indent === column) return open(reader.path.slice(0, -1), [...top.keys, ...keysBelow(text, offset, column)]);
  return top.filled ? null : open(reader.path, keysBelow(text, offset, column));
}
