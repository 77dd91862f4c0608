export type Cell = string | number | null;

/** A bar, and whether the measured value meets it. */
export interface Verdict {
  name: string;
  /** The measured value, in the unit of the bar. */
  value: number;
  /** The bar as readable text, such as `≤ 1.4 ×`. */
  bar: string;
  /** Whether the value meets the bar; null if it was not compared with the bar. */
  met: boolean | null;
  detail?: string;
}

/** Formats a number with a suitable number of digits, such as 12,345, 1.23, and 0.0045. */
function formatNumber(value: number): string {
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
 * @returns lines that are separated by newlines, without a trailing newline
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

/** Returns a line of the form `what: a against b unit = 0.53 ×`. */
export function ratioLine(what: string, measured: number, baseline: number, unit: string): string {
  const ratio = baseline === 0 ? Number.NaN : measured / baseline;
  return `${what}: ${formatNumber(measured)} against ${formatNumber(baseline)} ${unit} = ${formatNumber(ratio)} ×`;
}

/** Reports whether a value is at most a maximum. */
export function atMost(name: string, value: number, limit: number, unit: string): Verdict {
  return { name, value, bar: `≤ ${formatNumber(limit)} ${unit}`, met: value <= limit };
}

/** Reports whether a value is at least a minimum. */
export function atLeast(name: string, value: number, limit: number, unit: string): Verdict {
  return { name, value, bar: `≥ ${formatNumber(limit)} ${unit}`, met: value >= limit };
}

/**
 * Returns the verdict for a bar that could not be applied.
 * @param detail the reason
 */
export function notJudged(name: string, bar: string, detail: string): Verdict {
  return { name, value: Number.NaN, bar, met: null, detail };
}

/** Returns a verdict without a result, because the sizes of a smoke run are too small. */
const ofSmoke = (verdict: Verdict): Verdict => ({ ...verdict, met: null, detail: verdict.detail ?? 'smoke run' });

export function verdictLine(verdict: Verdict): string {
  const word = verdict.met === null ? 'NOT JUDGED' : verdict.met ? 'met' : 'MISSED';
  const value = Number.isNaN(verdict.value) ? '' : `${formatNumber(verdict.value)} `;
  return `bar ${verdict.name}: ${value}(${verdict.bar}) ${word}${verdict.detail ? `: ${verdict.detail}` : ''}`;
}

/**
 * Prints the verdicts, with `--json` also as one line of JSON. With `--smoke`, compares no value with its bar.
 * @returns the exit code: 1 if a bar was missed, else 0
 */
export function conclude(bench: string, found: readonly Verdict[], argv: readonly string[] = process.argv): number {
  const verdicts = argv.includes('--smoke') ? found.map(ofSmoke) : found;
  for (const verdict of verdicts) console.log(verdictLine(verdict));
  if (argv.includes('--json')) console.log(JSON.stringify({ bench, verdicts }));
  return verdicts.some((verdict) => verdict.met === false) ? 1 : 0;
}
