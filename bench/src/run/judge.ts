import type { Bar } from './bars.ts';
import { formatNumber } from './report.ts';

/** The measured value for a bar, or the reason why the bar cannot be judged. */
export type Figure = number | { notJudged: string };

/** A bar, and whether the measured value meets it. */
export interface Verdict {
  bar: Bar;
  /** The measured value, in the bar's unit; null if there is none. */
  value: number | null;
  /** Whether the value meets the bar; null if it is not judged. */
  met: boolean | null;
  /** The reason why the bar is not judged; null if it is judged. */
  reason: string | null;
}

/** Returns a figure without a value. @param reason why the bar cannot be judged */
export const notJudged = (reason: string): Figure => ({ notJudged: reason });

/** Returns the figure, or a figure without a value if its value is not finite. */
export const finite = (figure: Figure): Figure =>
  typeof figure === 'number' && !Number.isFinite(figure) ? notJudged(`the measured value is ${figure}`) : figure;

/** Judges a figure. A figure without a finite value is not judged. */
export function judge(bar: Bar, figure: Figure = notJudged('the bench returned no figure')): Verdict {
  const found = finite(figure);
  if (typeof found !== 'number') return { bar, value: null, met: null, reason: found.notJudged };
  return { bar, value: found, met: meets(bar, found), reason: null };
}

function meets({ compare, limit }: Bar, value: number): boolean {
  if (compare === '<') return value < limit;
  return compare === '≤' ? value <= limit : value >= limit;
}

/** Returns the limit as text, such as `≤ 1.4 × bare ws`. */
export const barText = ({ compare, limit, unit }: Bar): string => `${compare} ${limit} ${unit}`;

export function verdictLine({ bar, value, met, reason }: Verdict): string {
  const word = met === null ? `NOT JUDGED: ${reason}` : met ? 'met' : 'MISSED';
  return `bar ${bar.what}: ${value === null ? '' : `${formatNumber(value)} `}(${barText(bar)}) ${word}`;
}
