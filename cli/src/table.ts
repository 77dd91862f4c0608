import Table from 'cli-table3';
import stringWidth from 'string-width';
import { sanitiseLine } from './sanitise.ts';
import type { Style } from './style.ts';

export interface Column<Row> {
  heading: string;
  /** The bare text; it is made safe for the terminal here. Null: a dash. */
  text: (row: Row) => string | null;
  /** Colours what was made safe and cut. */
  paint?: (text: string, row: Row, style: Style) => string;
  /** May be cut when the line is too long; the widest such column gives way first. */
  flexible?: boolean;
  align?: 'right';
}

const gap = 2;
const narrowest = 6;

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

/** A table without lines, as wide as the terminal at most; without a limit when `style.width` is null. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], style: Style): string {
  const cells = rows.map((row) => columns.map((column) => sanitiseLine(column.text(row) ?? '-')));
  const natural = columns.map(({ heading }, at) =>
    Math.max(stringWidth(heading), ...cells.map((line) => stringWidth(line[at] ?? ''))),
  );
  const least = columns.map(({ heading, flexible }) => ({
    least: flexible ? Math.max(narrowest, stringWidth(heading)) : Number.POSITIVE_INFINITY,
  }));
  const widths = fitWidths(natural, least, style.width);
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
        const text = cut(cells[at]?.[index] ?? '', widths[index] ?? 0, index, columns);
        return column.paint ? column.paint(text, row, style) : text;
      }),
    );
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
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
