/** Prints the results of every bench: aligned tables, ratios of two figures of the same run, and whether a bar was met. */

export type Cell = string | number | null;

/** A bar and its measured value. `met` is null when the bench could not run; `detail` then says why. */
export interface Verdict {
  name: string;
  /** The measured value, in the unit of the bar. */
  value: number;
  /** The bar as readable text, such as `≤ 1.4 ×`. */
  bar: string;
  met: boolean | null;
  detail?: string;
}

/** A number with a suitable number of digits: 12,345 but 1.23 and 0.0045. */
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
 * Lays rows out under their headings; numbers to the right, words to the left.
 * @returns lines joined by newlines, without a trailing one
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

/** A line of the form `what: a against b = 0.53 ×`. */
export function ratioLine(what: string, measured: number, baseline: number, unit: string): string {
  const ratio = baseline === 0 ? Number.NaN : measured / baseline;
  return `${what}: ${formatNumber(measured)} against ${formatNumber(baseline)} ${unit} = ${formatNumber(ratio)} ×`;
}

/** The bar is a ceiling: the value must not pass it. */
export function atMost(name: string, value: number, limit: number, unit: string): Verdict {
  return { name, value, bar: `≤ ${formatNumber(limit)} ${unit}`, met: value <= limit };
}

/** The bar is a floor: the value must reach it. */
export function atLeast(name: string, value: number, limit: number, unit: string): Verdict {
  return { name, value, bar: `≥ ${formatNumber(limit)} ${unit}`, met: value >= limit };
}

/** A bar that could not be checked on this machine, with the reason. */
export function notJudged(name: string, bar: string, detail: string): Verdict {
  return { name, value: Number.NaN, bar, met: null, detail };
}

/** The sizes of a smoke run are too small for any bar. */
const ofSmoke = (verdict: Verdict): Verdict => ({ ...verdict, met: null, detail: verdict.detail ?? 'a smoke run' });

export function verdictLine(verdict: Verdict): string {
  const word = verdict.met === null ? 'NOT JUDGED' : verdict.met ? 'met' : 'MISSED';
  const value = Number.isNaN(verdict.value) ? '' : `${formatNumber(verdict.value)} `;
  return `bar ${verdict.name}: ${value}(${verdict.bar}) ${word}${verdict.detail ? `: ${verdict.detail}` : ''}`;
}

/**
 * Prints every verdict, and with `--json` among the arguments one JSON line of them for scripts.
 * With `--smoke` no bar is checked.
 * @returns the exit code: 1 when a bar was missed. A missed bar is a result, so nothing is thrown.
 */
export function conclude(bench: string, found: readonly Verdict[], argv: readonly string[] = process.argv): number {
  const verdicts = argv.includes('--smoke') ? found.map(ofSmoke) : found;
  for (const verdict of verdicts) console.log(verdictLine(verdict));
  if (argv.includes('--json')) console.log(JSON.stringify({ bench, verdicts }));
  return verdicts.some((verdict) => verdict.met === false) ? 1 : 0;
}
