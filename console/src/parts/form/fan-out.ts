/** Rollout options, except the plan. Fields are named as in the API. */
export interface FanOut {
  readonly canary?: number;
  /** A number of agents, or a percentage such as `25%`. */
  readonly batch?: number | string;
  readonly max_failures?: number;
  readonly offline?: 'report' | 'queue' | undefined;
  /** Seconds. */
  readonly ttl?: number;
}

/** Values in the form fields. An option with an empty value is not set. */
export interface FanOutDraft {
  readonly canary: string;
  readonly batch: string;
  readonly maxFailures: string;
  readonly offline: 'report' | 'queue';
  /** Maximum time to wait for agents that are offline, such as `90s`, `30m`, `24h`, or `7d`. */
  readonly wait: string;
}

export type FanOutFaults = Partial<Record<keyof FanOutDraft, string>>;

/** Starts with one agent, continues with a quarter of the agents at a time, and halts on the first failure. */
export const careful: FanOutDraft = { canary: '1', batch: '25%', maxFailures: '0', offline: 'report', wait: '24h' };
/** Starts all agents at the same time and ignores failures. */
export const atOnce: FanOutDraft = { canary: '', batch: '', maxFailures: '', offline: 'report', wait: '24h' };

/** Returns the preset that equals the draft, or `own`. */
export function fanOutPreset({ canary, batch, maxFailures }: FanOutDraft): 'careful' | 'at_once' | 'own' {
  const is = (other: FanOutDraft) =>
    canary === other.canary && batch === other.batch && maxFailures === other.maxFailures;
  return is(careful) ? 'careful' : is(atOnce) ? 'at_once' : 'own';
}

const maxNumber = 1_000_000;
const maxWaitSeconds = 31_536_000;
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

const wholeNumber = (text: string, min: number): number | null => {
  if (!/^\d{1,7}$/.test(text)) return null;
  const number = Number(text);
  return number >= min && number <= maxNumber ? number : null;
};

export const waitFault = 'Enter a time such as 30m, 24h, or 7d, up to 365d.';

/** Converts a duration such as `30m` to seconds. Returns null if it is invalid or out of range. */
export function readWait(text: string): number | null {
  const found = /^(\d{1,8})\s*([smhd])$/.exec(text.trim());
  if (found === null) return null;
  const seconds = Number(found[1]) * (units[found[2] as string] as number);
  return seconds >= 1 && seconds <= maxWaitSeconds ? seconds : null;
}

/** Returns the options to send, or an error message for each invalid field. */
export function readFanOut(draft: FanOutDraft): { options: FanOut } | { faults: FanOutFaults } {
  const canary = draft.canary.trim();
  const batch = draft.batch.trim();
  const failures = draft.maxFailures.trim();
  const faults: { -readonly [K in keyof FanOutFaults]: FanOutFaults[K] } = {};
  if (canary !== '' && wholeNumber(canary, 1) === null) faults.canary = 'Enter a number of agents, 1 or more.';
  const share = /^([1-9]\d?|100)\s*%$/.exec(batch);
  if (batch !== '' && share === null && wholeNumber(batch, 1) === null)
    faults.batch = 'Enter a number of agents, or a share such as 25%.';
  if (failures !== '' && wholeNumber(failures, 0) === null) faults.maxFailures = 'Enter a number, 0 or more.';
  const ttl = readWait(draft.wait);
  if (draft.offline === 'queue' && ttl === null) faults.wait = waitFault;
  if (Object.keys(faults).length > 0) return { faults };
  return {
    options: {
      ...(canary === '' ? {} : { canary: Number(canary) }),
      ...(batch === '' ? {} : { batch: share === null ? Number(batch) : `${share[1]}%` }),
      ...(failures === '' ? {} : { max_failures: Number(failures) }),
      offline: draft.offline,
      ...(draft.offline === 'queue' && ttl !== null ? { ttl } : {}),
    },
  };
}

const agents = (count: number): string => (count === 1 ? '1 agent' : `${count} agents`);

/**
 * Describes the rollout in one to three sentences.
 * @param count number of agents
 */
export function sentence({ canary, batch, max_failures, offline }: FanOut, count: number): string {
  const size = typeof batch === 'string' ? Math.max(1, Math.floor((count * Number.parseInt(batch, 10)) / 100)) : batch;
  const first = canary === undefined || canary >= count ? null : canary;
  const rest = first === null ? count : count - first;
  const whom = first === null ? agents(rest) : `the other ${rest}`;
  const coversAll = size === undefined || size >= rest;
  const how = coversAll ? `${whom} at once` : `${whom}, at most ${size} at a time`;
  const parts = [
    first === null
      ? `Runs on ${how}.`
      : `Runs on ${agents(first)} first and, only if ${first === 1 ? 'it succeeds' : 'all of them succeed'}, on ${how}.`,
  ];
  if (max_failures === 0) parts.push('Halts at the first failure.');
  else if (max_failures !== undefined)
    parts.push(`Halts after more than ${max_failures} ${max_failures === 1 ? 'failure' : 'failures'}.`);
  if (offline !== undefined)
    parts.push(
      offline === 'queue'
        ? 'Agents that are offline run when they reconnect.'
        : 'Agents that are offline count as failed.',
    );
  return parts.join(' ');
}

/** Maximum number of run sizes to describe. */
const maxSizes = 4;

/**
 * Describes runs that start at the same time. The canary and the limits apply to each run separately.
 * @param counts number of agents of each run
 */
export function sentences(options: FanOut, counts: readonly number[]): readonly string[] {
  if (counts.length === 1) return counts.map((count) => sentence(options, count));
  const sizes = [...Map.groupBy(counts, (count) => count)].map(([count, runs]) => ({ count, runs: runs.length }));
  return [
    `Starts ${counts.length} runs at the same time. Each run has its own canary, limit, and allowed failures.`,
    ...sizes
      .slice(0, maxSizes)
      .map(({ count, runs }) =>
        runs === 1
          ? `One run with ${agents(count)}: ${sentence(options, count)}`
          : `${runs} runs with ${agents(count)} each: ${sentence(options, count)}`,
      ),
    ...(sizes.length > maxSizes ? [`Runs of ${sizes.length - maxSizes} other sizes start in the same way.`] : []),
  ];
}
