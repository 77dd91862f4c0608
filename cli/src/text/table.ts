import Table from 'cli-table3';
import stringWidth from 'string-width';
import { sanitiseLine } from './sanitize.ts';
import type { Style } from './style.ts';

export interface Column<Row> {
  heading: string;
  /** Returns plain text, which the table escapes for the terminal; null for a dash. */
  text: (row: Row) => string | null;
  /** Colors the escaped and truncated text. */
  paint?: (text: string, row: Row, style: Style) => string;
  /** Whether the column may be truncated if the line is too long. The widest such column is truncated first. */
  flexible?: boolean;
  /** Whether text that is too long wraps to the next line instead of being truncated. */
  wraps?: boolean;
  /** Preferred minimum width of a flexible column. Default: 12. */
  wants?: number;
  /**
   * Whether the column is hidden on a narrow terminal, except with `--verbose`. The last such column is hidden first.
   */
  extra?: boolean;
  align?: 'right';
}

const gap = 2;
const narrowest = 6;
/** Default preferred width of a flexible column. Extra columns are hidden before it becomes narrower than this. */
const comfortable = 12;

/**
 * Repeatedly narrows the widest flexible column until the line fits: first to the preferred widths, then to the minimum
 * widths.
 * @param natural the full width of each column
 * @param flexible the preferred and minimum width of each column; by default, the minimum width is preferred
 * @param width width of the line; null for no limit
 */
export function fitWidths(
  natural: readonly number[],
  flexible: readonly { minWidth: number; good?: number }[],
  width: number | null,
): number[] {
  const widths = [...natural];
  if (width === null) return widths;
  let excess = widths.reduce((sum, each) => sum + each, 0) + gap * (widths.length - 1) - width;
  for (const floors of [flexible.map(({ minWidth, good }) => good ?? minWidth), flexible.map((each) => each.minWidth)])
    while (excess > 0) {
      let widest = -1;
      for (const [at, floor] of floors.entries())
        if ((widths[at] ?? 0) > floor && (widest < 0 || (widths[at] ?? 0) > (widths[widest] ?? 0))) widest = at;
      if (widest < 0) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      excess--;
    }
  return widths;
}

/** A column with its full, preferred, and minimum widths. */
interface Measured<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  readonly natural: number;
  readonly good: number;
  readonly minWidth: number;
}

function measure<Row>(column: Column<Row>, rows: readonly Row[]): Measured<Row> {
  const cells = rows.map((row) => sanitiseLine(column.text(row) ?? '-'));
  const heading = stringWidth(column.heading);
  const natural = Math.max(heading, ...cells.map((cell) => stringWidth(cell)));
  const atLeast = (width: number) => (column.flexible ? Math.min(natural, Math.max(width, heading)) : natural);
  return { column, cells, natural, good: atLeast(column.wants ?? comfortable), minWidth: atLeast(narrowest) };
}

const lineOf = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap * (widths.length - 1);

/** Omits extra columns, the last one first, until all other columns have their preferred width. */
function columnsThatFit<Row>(columns: readonly Measured<Row>[], { width, verbose }: Style): Measured<Row>[] {
  const remaining = [...columns];
  while (width !== null && !verbose && lineOf(remaining.map(({ good }) => good)) > width) {
    const last = remaining.findLastIndex(({ column }) => column.extra);
    if (last < 0) break;
    remaining.splice(last, 1);
  }
  return remaining;
}

/**
 * Renders a table without borders that is at most as wide as the terminal. If truncating columns is not enough, renders
 * each row as a card with one full line per column.
 */
export function renderTable<Row>(all: readonly Column<Row>[], rows: readonly Row[], style: Style): string {
  const measured = columnsThatFit(
    all.map((column) => measure(column, rows)),
    style,
  );
  if (style.width !== null && lineOf(measured.map(({ minWidth }) => minWidth)) > style.width)
    return renderCards(
      all.map((column) => measure(column, rows)),
      rows,
      style,
      style.width,
    );
  const columns = measured.map(({ column }) => column);
  const widths = fitWidths(
    measured.map(({ natural }) => natural),
    measured.map(({ column, good, minWidth }) =>
      column.flexible ? { good, minWidth } : { minWidth: Number.POSITIVE_INFINITY },
    ),
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
        const cell = measured[index]?.cells[at] ?? '';
        const width = widths[index] ?? 0;
        const lines = column.wraps ? wrap(cell, width) : [cut(cell, width, index, columns)];
        return lines.map((text) => (column.paint ? column.paint(text, row, style) : text)).join('\n');
      }),
    );
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** Renders rows as cards for a narrow terminal: one line per column, with its heading. */
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
      // A column without a heading contains a marker, which becomes a prefix of the next column.
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
 * Breaks text into lines of at most `width` columns, at spaces or, if a word is too long, within it.
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

/**
 * Truncates text here rather than in the table library, to preserve the gap between columns even after right-aligned
 * text.
 */
function cut<Row>(text: string, width: number, at: number, columns: readonly Column<Row>[]): string {
  let shown = text;
  if (stringWidth(text) > width) {
    const characters = [...text];
    while (characters.length > 0 && stringWidth(characters.join('')) > width - 1) characters.pop();
    shown = `${characters.join('')}…`;
  }
  return columns[at]?.align === 'right' && at < columns.length - 1 ? shown + ' '.repeat(gap) : shown;
}
