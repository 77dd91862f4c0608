export type Cell = string | number | null;

/** Formats a number with a suitable number of digits, such as 12,345, 1.23, and 0.0045. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 4;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function cellText(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return '-';
  return typeof cell === 'number' ? formatNumber(cell) : cell;
}

/**
 * Formats rows under their headings, with numbers aligned to the right and text to the left.
 * @returns lines separated by newlines, without a trailing newline
 */
export function table(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => cellText(row[column]).length)),
  );
  const line = (cells: readonly string[], numeric: readonly boolean[]) =>
    cells
      .map((text, column) => (numeric[column] ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd();
  const numeric = headings.map((_, column) => rows.some((row) => typeof row[column] === 'number'));
  return [
    line(headings, numeric),
    widths.map((width) => '-'.repeat(width)).join('  '),
    ...rows.map((row) =>
      line(
        headings.map((_, column) => cellText(row[column])),
        numeric,
      ),
    ),
  ].join('\n');
}

/** Returns a line of the form `what: a vs. b unit = 0.53 ×`. */
export function ratioLine(what: string, measured: number, baseline: number, unit: string): string {
  const ratio = baseline === 0 ? Number.NaN : measured / baseline;
  return `${what}: ${formatNumber(measured)} vs. ${formatNumber(baseline)} ${unit} = ${formatNumber(ratio)} ×`;
}
