import type { AuditFilter } from '../../api/audit.ts';

/** Values in the filter fields. An empty value matches everything. */
export interface AuditFields {
  readonly category: string;
  readonly operator: string;
  readonly agent: string;
  /** Local time in the format of `<input type="datetime-local">`. */
  readonly after: string;
  readonly before: string;
}

/** Recent periods, with their lengths in milliseconds. */
export const periods = {
  hour: { label: 'Last hour', ms: 3_600_000 },
  day: { label: 'Last 24 hours', ms: 86_400_000 },
  week: { label: 'Last 7 days', ms: 604_800_000 },
} as const;

export const isPeriod = (text: string): text is keyof typeof periods => Object.hasOwn(periods, text);

/**
 * Returns when a recent period starts, in RFC 3339. The time is rounded to a full minute, so that consecutive queries
 * use the same one.
 * @param now Unix milliseconds
 */
export const startOfPeriod = (period: keyof typeof periods, now: number): string =>
  new Date(Math.floor((now - periods[period].ms) / 60_000) * 60_000).toISOString();

const timeOf = (local: string): string | undefined => {
  // Date.parse accepts incomplete times: `2026-` would mean the start of the year.
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(local) ? Date.parse(local) : Number.NaN;
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
};

/** Returns the query parameters for the API. A category with a dot is an event type. */
export function auditFilterOf({ category, operator, agent, after, before }: AuditFields): AuditFilter {
  const from = timeOf(after);
  const until = timeOf(before);
  return {
    ...(category === '' ? {} : category.includes('.') ? { event_type: category } : { category }),
    ...(operator.trim() === '' ? {} : { operator: operator.trim() }),
    ...(agent.trim() === '' ? {} : { agent: agent.trim() }),
    ...(from === undefined ? {} : { after: from }),
    ...(until === undefined ? {} : { before: until }),
  };
}
