import { type Bar, bars } from './bars.ts';
import { barText, type Figure, judge, type Verdict } from './judge.ts';
import { type Cell, formatNumber } from './report.ts';

/** A figure measured at two fleet sizes. */
export interface Growth {
  what: string;
  unit: string;
  /** Number of agents and the value, for the smaller and for the larger fleet. */
  points: readonly [agents: number, value: number][];
}

/** A figure for Muster and for another product, measured in one run. */
export interface Comparison {
  what: string;
  muster: number;
  /** Name and version of the other product. */
  peer: string;
  /** The other product's value; null if it was not measured. */
  value: number | null;
  /** The reason why the other product was not measured; null if it was. */
  reason: string | null;
}

/** A bench's figures, as recorded. */
export interface Result {
  bench: string;
  /** Scale of the measurement, such as `10,000 agents, 3 rounds`. */
  sizes: string;
  /** Values by bar name. */
  figures: Readonly<Record<string, Figure>>;
  growth: readonly Growth[];
  comparisons: readonly Comparison[];
}

/** Where and when a measurement was taken. */
export interface Place {
  /** Commit of the measured code. */
  commit: string;
  /** Processors, memory, system, and Node.js version. */
  machine: string;
  /** When the run started, in ISO 8601. */
  at: string;
  /** Load average over one minute before the run. */
  load: number;
}

/** The results of a bench run, with its time and machine. */
export type Run = Place & Omit<Result, 'bench'>;

/** Recorded runs by bench, oldest first. All belong to the same commit and the same machine. */
export type Results = Readonly<Record<string, readonly Run[]>>;

const maxRuns = 3;

/** Adds a run. Drops runs from another commit or machine, and all but the last three runs. */
export function withRun(results: Results, bench: string, run: Run): Results {
  const alike = (results[bench] ?? []).filter(
    ({ commit, machine }) => commit === run.commit && machine === run.machine,
  );
  return { ...results, [bench]: [...alike, run].slice(-maxRuns) };
}

/** A bar with its verdict in each recorded run. */
interface BarRow {
  bench: string;
  bar: Bar;
  verdicts: Verdict[];
}

/** Returns one row per bar of the benches, in the order of the bars. A bar without a figure is not judged. */
function barRows(results: Results, benches: readonly string[]): BarRow[] {
  return Object.entries<Record<string, Bar>>(bars)
    .filter(([bench]) => benches.includes(bench))
    .flatMap(([bench, own]) =>
      Object.entries(own).map(([name, bar]) => ({
        bench,
        bar,
        verdicts: (results[bench] ?? []).map(({ figures }) => judge(bar, figures[name])),
      })),
    );
}

/**
 * Returns the overall verdict. A missed bar outranks a run that is not judged, which outranks a bar that is met.
 */
function overall(verdicts: readonly Verdict[]): string {
  const missed = verdicts.filter(({ met }) => met === false).length;
  const of = verdicts.length > 1 ? ` in ${missed} of ${verdicts.length} runs` : '';
  if (missed > 0) return `missed${of}`;
  const open = verdicts.find(({ met }) => met === null);
  if (verdicts.length === 0 || open !== undefined) return `not judged: ${open?.reason ?? 'not measured'}`;
  return 'met';
}

/** Reports whether a bar was missed in a recorded run. */
export const anyMissed = (results: Results): boolean =>
  barRows(results, Object.keys(results)).some(({ verdicts }) => verdicts.some(({ met }) => met === false));

export const resultHeadings = ['bench', 'figure', 'measured', 'bar', 'result'] as const;

/** Returns one row per bar of the benches, with the values of all recorded runs. */
export function resultRows(results: Results, benches: readonly string[] = Object.keys(bars)): Cell[][] {
  return barRows(results, benches).map(({ bench, bar, verdicts }) => [
    bench,
    bar.what,
    verdicts.map(({ value }) => (value === null ? '-' : formatNumber(value))).join(', ') || '-',
    barText(bar),
    overall(verdicts),
  ]);
}

export const growthHeadings = ['bench', 'figure', 'agents', 'value', 'agents', 'value', 'ratio'] as const;

/** Returns the figures at two fleet sizes, from the last recorded run of each bench. */
export function growthRows(results: Results): Cell[][] {
  return Object.entries(results).flatMap(([bench, runs]) =>
    (runs.at(-1)?.growth ?? []).map(({ what, unit, points: [few, all] }) => [
      ...[bench, `${what}, ${unit}`],
      ...(few === undefined || all === undefined
        ? [null, null, null, null, null]
        : [count(few[0]), few[1], count(all[0]), all[1], all[1] / few[1]]),
    ]),
  );
}

export const comparisonHeadings = ['figure', 'Muster', 'peer', 'value', 'ratio'] as const;

export const comparisonRows = (comparisons: readonly Comparison[]): Cell[][] =>
  comparisons.map(({ what, muster, peer, value, reason }) => [
    what,
    muster,
    peer,
    value ?? `not measured: ${reason}`,
    value === null ? null : muster / value,
  ]);

const count = (agents: number): string => agents.toLocaleString('en-US');
