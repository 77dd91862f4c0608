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
