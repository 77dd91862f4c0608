import { callsOf, entriesOf, type FaultInjected, type History } from './history.ts';

/** How long faults were noticeable: distributions over all faults of a history. */

export interface Distribution {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly max: number;
}

/** Returns the quantiles of the values; zeros if there are none. */
export function distributionOf(values: readonly number[]): Distribution {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), max: sorted.at(-1) ?? 0 };
}

/** Milliseconds after a kill in which a lost link counts as lost by it. */
const lostWithinMs = 1_000;

const killsOf = (history: History): FaultInjected[] =>
  entriesOf(history, 'fault').filter(({ kind }) => kind === 'kill-replica');

/** Returns for each link that a kill of a replica ended how long its agent had none, in milliseconds. */
export function absencesAfterKills(history: History): number[] {
  const links = Map.groupBy(entriesOf(history, 'link'), ({ node }) => node);
  return killsOf(history).flatMap((kill) =>
    [...links.values()].flatMap((of) => {
      const lost = of.findIndex(({ at, linked }) => !linked && at >= kill.at && at <= kill.at + lostWithinMs);
      const back = lost < 0 ? undefined : of.slice(lost).find(({ linked }) => linked);
      return back === undefined ? [] : [back.at - kill.at];
    }),
  );
}

/** Length of the interval after a kill in which requests are counted, in milliseconds. */
const requestsMs = 5_000;

/** Requests through the balancer after a kill of a replica. */
export interface RequestsAfterKill {
  readonly requests: number;
  /** Requests without an answer, or with a status from 500 on. */
  readonly failed: number;
  /** Milliseconds from the kill until the last failed request was sent. */
  readonly lastFailureMs: number;
}

/** Returns for each kill of a replica what clients saw in the next five seconds. */
export function requestsAfterKills(history: History): RequestsAfterKill[] {
  const calls = callsOf(history).filter(({ invoked }) => invoked.replica === 'balancer');
  return killsOf(history).map((kill) => {
    const sent = calls.filter(({ invoked: { at } }) => at >= kill.at && at <= kill.at + requestsMs);
    const failed = sent.filter(
      ({ outcome }) =>
        outcome === null || outcome.type === 'unknown' || (outcome.type === 'refused' && outcome.status >= 500),
    );
    const last = Math.max(kill.at, ...failed.map(({ invoked }) => invoked.at));
    return { requests: sent.length, failed: failed.length, lastFailureMs: last - kill.at };
  });
}

/** Returns the durations of the successful runs in which a replica was killed, in milliseconds. */
export function runsAcrossKills(history: History): number[] {
  const kills = killsOf(history);
  const ends = new Map<string, number>();
  for (const { run, finished, at } of entriesOf(history, 'run')) if (finished && !ends.has(run)) ends.set(run, at);
  return callsOf(history).flatMap(({ invoked, outcome }) => {
    const end = outcome?.type === 'succeeded' && outcome.id !== undefined ? ends.get(outcome.id) : undefined;
    const crossed = end !== undefined && kills.some(({ at }) => at >= invoked.at && at <= end);
    return invoked.request.kind === 'run' && crossed ? [end - invoked.at] : [];
  });
}

/** Returns how often each refusal occurred while a fault of this kind lasted: codes with their numbers. */
export function refusalsDuring(history: History, kind: string): Record<string, number> {
  const faults = entriesOf(history, 'fault').filter((fault) => fault.kind === kind);
  const counts: Record<string, number> = {};
  for (const { outcome } of callsOf(history)) {
    if (outcome === null || outcome.type === 'succeeded') continue;
    if (!faults.some(({ at, until }) => outcome.at >= at && outcome.at <= until)) continue;
    const name = outcome.type === 'refused' ? `${outcome.status} ${outcome.code}` : outcome.reason;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const line = (name: string, { count, p50, p90, max }: Distribution, digits = 0) =>
  `  ${name.padEnd(58)} n ${String(count).padStart(5)}  p50 ${p50.toFixed(digits)}  p90 ${p90.toFixed(digits)}  max ${max.toFixed(digits)}`;

/** Returns the number of operations with each last status. */
function operationsByStatus(history: History): Record<string, number> {
  const last = new Map(entriesOf(history, 'operation').map(({ operation, status }) => [operation, status]));
  const counts: Record<string, number> = {};
  for (const status of last.values()) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Returns the distributions as text. */
export function timesText(history: History): string {
  const requests = requestsAfterKills(history).filter((of) => of.requests > 0);
  const calls = callsOf(history);
  const failed = calls.filter(({ outcome }) => outcome?.type === 'unknown' || outcome?.type === 'refused');
  const of = (kind: string) => JSON.stringify(refusalsDuring(history, kind));
  return [
    line('kill of a replica: agents back after (ms)', distributionOf(absencesAfterKills(history))),
    line(
      'kill of a replica: failed requests within 5 s (%)',
      distributionOf(requests.map((one) => (100 * one.failed) / one.requests)),
      1,
    ),
    line('kill of a replica: last failed request after (ms)', distributionOf(requests.map((one) => one.lastFailureMs))),
    line('runs during which a replica was killed: duration (ms)', distributionOf(runsAcrossKills(history))),
    `  failed requests during a kill of NATS: ${of('kill-nats')}`,
    `  failed requests during a kill of PostgreSQL: ${of('kill-postgres')}`,
    `  ${calls.length} requests, ${failed.length} failed; operations: ${JSON.stringify(operationsByStatus(history))}`,
  ].join('\n');
}
