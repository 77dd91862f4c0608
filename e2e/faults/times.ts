import { type Call, callsOf, entriesOf, type FaultInjected, type History } from './history.ts';

/** Measures how faults affected agents, requests, and runs: distributions over all faults of a history. */

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

/** Milliseconds after a replica was killed within which a lost link is attributed to the kill. */
const lostWithinMs = 1_000;

/** Milliseconds after the end of a fault in which it may still affect the measurements of the next one. */
const aftereffectMs = 10_000;

/** Returns the kills of replicas. @param alone whether to return only kills that no other fault affects */
function killsOf(history: History, alone: boolean): FaultInjected[] {
  const faults = entriesOf(history, 'fault');
  return faults.filter(
    (fault) =>
      fault.kind === 'kill-replica' && !(alone && faults.some((other) => other !== fault && affects(other, fault))),
  );
}

const affects = (other: FaultInjected, { at }: FaultInjected): boolean =>
  other.at < at + requestsMs && other.until > at - aftereffectMs;

/** Milliseconds after a replica was killed within which requests are counted. */
const requestsMs = 5_000;

/**
 * Returns, for each link that a kill of a replica ended, the milliseconds from the kill to the agent's next link.
 * @param alone whether to count only kills that no other fault affects
 */
export function absencesAfterKills(history: History, alone = false): number[] {
  const links = Map.groupBy(entriesOf(history, 'link'), ({ node }) => node);
  return killsOf(history, alone).flatMap((kill) =>
    [...links.values()].flatMap((of) => {
      const lost = of.findIndex(({ at, linked }) => !linked && at >= kill.at && at <= kill.at + lostWithinMs);
      const back = lost < 0 ? undefined : of.slice(lost).find(({ linked }) => linked);
      return back === undefined ? [] : [back.at - kill.at];
    }),
  );
}

/** Requests through the balancer after a replica was killed. */
export interface RequestsAfterKill {
  readonly requests: number;
  /** Requests without an answer, or with a status of at least 500. */
  readonly failed: number;
  /** Milliseconds from the kill until the last failed request was sent. */
  readonly lastFailureMs: number;
}

/** Reports whether a request got no answer, or a status of at least 500. */
const hasFailed = ({ outcome }: Call): boolean =>
  outcome === null ||
  outcome.type === 'unknown' ||
  (outcome.type === 'refused' && (outcome.status === 0 || outcome.status >= 500));

const throughBalancer = (history: History): Call[] =>
  callsOf(history).filter(({ invoked }) => invoked.replica === 'balancer');

/**
 * Returns, for each kill of a replica, how requests ended that clients sent in the next five seconds.
 * @param alone whether to count only kills that no other fault affects
 */
export function requestsAfterKills(history: History, alone = false): RequestsAfterKill[] {
  const calls = throughBalancer(history);
  return killsOf(history, alone).map((kill) => {
    const sent = calls.filter(({ invoked: { at } }) => at >= kill.at && at <= kill.at + requestsMs);
    const failed = sent.filter(hasFailed);
    const last = Math.max(kill.at, ...failed.map(({ invoked }) => invoked.at));
    return { requests: sent.length, failed: failed.length, lastFailureMs: last - kill.at };
  });
}

/** Returns the durations of the successful runs in which a replica was killed, in milliseconds. */
export function runsAcrossKills(history: History): number[] {
  const kills = killsOf(history, false);
  const ends = new Map<string, number>();
  for (const { run, finished, at } of entriesOf(history, 'run')) if (finished && !ends.has(run)) ends.set(run, at);
  return callsOf(history).flatMap(({ invoked, outcome }) => {
    const end = outcome?.type === 'succeeded' && outcome.id !== undefined ? ends.get(outcome.id) : undefined;
    const crossed = end !== undefined && kills.some(({ at }) => at >= invoked.at && at <= end);
    return invoked.request.kind === 'run' && crossed ? [end - invoked.at] : [];
  });
}

/** Counts the requests through the balancer that failed during faults of this kind, by status and error code. */
export function refusalsDuring(history: History, kind: string): Record<string, number> {
  const faults = entriesOf(history, 'fault').filter((fault) => fault.kind === kind);
  const counts: Record<string, number> = {};
  for (const call of throughBalancer(history)) {
    const { outcome } = call;
    if (outcome === null || outcome.type === 'succeeded' || !hasFailed(call)) continue;
    if (!faults.some(({ at, until }) => outcome.at >= at && outcome.at <= until)) continue;
    const name = outcome.type === 'refused' ? `${outcome.status} ${outcome.code}` : outcome.reason;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const line = (name: string, { count, p50, p90, max }: Distribution, digits = 0) =>
  `  ${name.padEnd(66)} n ${String(count).padStart(5)}  p50 ${p50.toFixed(digits)}  p90 ${p90.toFixed(digits)}  max ${max.toFixed(digits)}`;

/** Returns the number of operations with each last status. */
function operationsByStatus(history: History): Record<string, number> {
  const last = new Map(entriesOf(history, 'operation').map(({ operation, status }) => [operation, status]));
  const counts: Record<string, number> = {};
  for (const status of last.values()) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Returns the distributions as text. */
export function timesText(history: History): string {
  const calls = callsOf(history);
  const during = (kind: string) => JSON.stringify(refusalsDuring(history, kind));
  const afterKills = [false, true].flatMap((alone) => {
    const requests = requestsAfterKills(history, alone).filter((of) => of.requests > 0);
    const shares = requests.map((one) => (100 * one.failed) / one.requests);
    const name = alone ? 'kill of a replica, no other fault' : 'kill of a replica';
    return [
      line(`${name}: agents back after (ms)`, distributionOf(absencesAfterKills(history, alone))),
      line(`${name}: failed requests within 5 s (%)`, distributionOf(shares), 1),
      line(`${name}: last failed request after (ms)`, distributionOf(requests.map((one) => one.lastFailureMs))),
    ];
  });
  return [
    ...afterKills,
    line('runs during which a replica was killed: duration (ms)', distributionOf(runsAcrossKills(history))),
    ...['kill-replica', 'kill-nats', 'kill-postgres'].map(
      (kind) => `  failed requests during ${kind}: ${during(kind)}`,
    ),
    `  ${calls.length} requests, ${calls.filter(hasFailed).length} failed; operations: ${JSON.stringify(operationsByStatus(history))}`,
  ].join('\n');
}
