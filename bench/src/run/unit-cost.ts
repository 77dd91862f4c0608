import { median } from './quantiles.ts';

/** Sums since the start of a program, or differences between them, by name. */
export type Counters<Name extends string> = Readonly<Record<Name, number>>;

/** Counters at a point in time. */
export interface Reading<Name extends string> {
  /** Seconds of a monotonic clock. */
  readonly at: number;
  readonly counters: Counters<Name>;
}

function combine<Name extends string>(a: Counters<Name>, of: (value: number, name: Name) => number): Counters<Name> {
  return Object.fromEntries(
    Object.entries<number>(a).map(([name, value]) => [name, of(value, name as Name)]),
  ) as Counters<Name>;
}

/** Returns how much the counters increased in each second between two readings. */
export const perSecond = <Name extends string>(before: Reading<Name>, after: Reading<Name>): Counters<Name> =>
  combine(after.counters, (value, name) => (value - before.counters[name]) / (after.at - before.at));

/**
 * Returns the marginal cost of a unit of work: the increase between two readings beyond that without the work.
 * @param idle the increase per second without the work
 * @param units number of units between the readings
 */
export const perUnit = <Name extends string>(
  before: Reading<Name>,
  after: Reading<Name>,
  idle: Counters<Name>,
  units: number,
): Counters<Name> => {
  const secs = after.at - before.at;
  return combine(after.counters, (value, name) => (value - before.counters[name] - idle[name] * secs) / units);
};

/** Returns the cost of each of `units` things that exist while the counters increase at the rate `withAll`. */
export const perThing = <Name extends string>(
  withAll: Counters<Name>,
  without: Counters<Name>,
  units: number,
): Counters<Name> => combine(withAll, (value, name) => (value - without[name]) / units);

/** Returns the median of each counter. @param all at least one element */
export const medians = <Name extends string>(all: readonly Counters<Name>[]): Counters<Name> =>
  combine(all[0]!, (_, name) => median(all.map((one) => one[name])));
