import Table from 'cli-table3';
import stringWidth from 'string-width';
import { sanitiseLine } from './sanitize.ts';
import type { Style } from './style.ts';

export interface Column<Row> {
  heading: string;
  /** The bare text; it is made safe for the terminal here. Null: a dash. */
  text: (row: Row) => string | null;
  /** Colours what was made safe and cut. */
  paint?: (text: string, row: Row, style: Style) => string;
  /** May be cut when the line is too long; the widest such column gives way first. */
  flexible?: boolean;
  /** Columns without which it says little, where it is flexible; 12 unless it is said. */
  wants?: number;
  /** Left out where the line has no good room for it, the last such column first; `--verbose` keeps it. */
  extra?: boolean;
  align?: 'right';
}

const gap = 2;
const narrowest = 6;
/** Below this a flexible column says little: an extra one goes before it comes to that. */
const comfortable = 12;

/**
 * Widths that fit: the widest flexible column gives way until the line does, none below 6 or its heading.
 * @param natural what each column would take
 * @param width   of the line; null: there is no limit
 */
export function fitWidths(
  natural: readonly number[],
  flexible: readonly { least: number }[],
  width: number | null,
): number[] {
  const widths = [...natural];
  if (width === null) return widths;
  let excess = widths.reduce((sum, each) => sum + each, 0) + gap * (widths.length - 1) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [at, { least }] of flexible.entries())
      if ((widths[at] ?? 0) > least && (widest < 0 || (widths[at] ?? 0) > (widths[widest] ?? 0))) widest = at;
    if (widest < 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess--;
  }
  return widths;
}

/** A column with what it takes: all of it, what it can do with, and what it cannot do without. */
interface Measured<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  readonly natural: number;
  readonly good: number;
  readonly least: number;
}

function measure<Row>(column: Column<Row>, rows: readonly Row[]): Measured<Row> {
  const cells = rows.map((row) => sanitiseLine(column.text(row) ?? '-'));
  const heading = stringWidth(column.heading);
  const natural = Math.max(heading, ...cells.map((cell) => stringWidth(cell)));
  const atLeast = (width: number) => (column.flexible ? Math.min(natural, Math.max(width, heading)) : natural);
  return { column, cells, natural, good: atLeast(column.wants ?? comfortable), least: atLeast(narrowest) };
}

const lineOf = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap * (widths.length - 1);

/** The columns there is good room for: of the extra ones, the last go first. */
function withRoom<Row>(columns: readonly Measured<Row>[], { width, verbose }: Style): Measured<Row>[] {
  const kept = [...columns];
  while (width !== null && !verbose && lineOf(kept.map(({ good }) => good)) > width) {
    const last = kept.findLastIndex(({ column }) => column.extra);
    if (last < 0) break;
    kept.splice(last, 1);
  }
  return kept;
}

/**
 * A table without lines, as wide as the terminal at most; without a limit when `style.width` is null. Where even cut
 * columns do not fit, each row becomes a few lines, one a column, and nothing is cut.
 */
export function renderTable<Row>(all: readonly Column<Row>[], rows: readonly Row[], style: Style): string {
  const measured = withRoom(
    all.map((column) => measure(column, rows)),
    style,
  );
  if (style.width !== null && lineOf(measured.map(({ least }) => least)) > style.width)
    return renderCards(
      all.map((column) => measure(column, rows)),
      rows,
      style,
      style.width,
    );
  const columns = measured.map(({ column }) => column);
  const widths = fitWidths(
    measured.map(({ natural }) => natural),
    measured.map(({ column, least }) => ({ least: column.flexible ? least : Number.POSITIVE_INFINITY })),
    style.width,
  );
  const blank = Object.fromEntries(
    ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
      [side, ''],
      [`${side}-mid`, ''],
      [`${side}-left`, ''],
      [`${side}-right`, ''],
    ]),
  );
  const last = columns.length - 1;
  const table = new Table({
    chars: { ...blank, middle: '' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
    colWidths: widths.map((width, at) => (at === last ? width : width + gap)),
    colAligns: columns.map(({ align }) => align ?? 'left'),
  });
  table.push(columns.map(({ heading }, at) => style.color.bold(cut(heading, widths[at] ?? 0, at, columns))));
  for (const [at, row] of rows.entries())
    table.push(
      columns.map((column, index) => {
        const text = cut(measured[index]?.cells[at] ?? '', widths[index] ?? 0, index, columns);
        return column.paint ? column.paint(text, row, style) : text;
      }),
    );
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Rows one below the other, as narrow terminals have them: each column a line, its heading in front. */
function renderCards<Row>(
  columns: readonly Measured<Row>[],
  rows: readonly Row[],
  style: Style,
  width: number,
): string {
  const margin = Math.max(...columns.map(({ column }) => stringWidth(column.heading))) + gap;
  const cards = rows.map((row, at) => {
    let mark = '';
    return columns.flatMap(({ column, cells }) => {
      const cell = cells[at] ?? '';
      // What has no heading is a mark of what comes next.
      if (column.heading === '') {
        mark = cell.trim() === '' ? '' : `${cell} `;
        return [];
      }
      const text = mark + cell;
      mark = '';
      const heading = column.heading + ' '.repeat(margin - stringWidth(column.heading));
      return wrap(text, Math.max(narrowest, width - margin)).map((line, part) => {
        const painted = column.paint ? column.paint(line, row, style) : line;
        return `${part === 0 ? style.color.bold(heading) : ' '.repeat(margin)}${painted}`.trimEnd();
      });
    });
  });
  return cards.map((lines) => lines.join('\n')).join('\n\n');
}

/**
 * Text in lines of a width at most: broken at spaces, and where there is none within a word.
 * @param text one line, safe for a terminal
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (stringWidth(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (line !== '' && stringWidth(line + character) > width) {
        lines.push(line);
        line = '';
      }
      line += character;
    }
  }
  return line === '' && lines.length > 0 ? lines : [...lines, line];
}

/** Cut here rather than by the table, so that the gap between columns stays; right-aligned text gets its gap too. */
function cut<Row>(text: string, width: number, at: number, columns: readonly Column<Row>[]): string {
  let kept = text;
  if (stringWidth(text) > width) {
    const characters = [...text];
    while (characters.length > 0 && stringWidth(characters.join('')) > width - 1) characters.pop();
    kept = `${characters.join('')}…`;
  }
  return columns[at]?.align === 'right' && at < columns.length - 1 ? kept + ' '.repeat(gap) : kept;
}
