import type { AuditFilter } from '../../api/audit.ts';

/** The filter as the fields have it: all of it text, empty where nothing is asked for. */
export interface AuditFields {
  readonly category: string;
  readonly operator: string;
  readonly agent: string;
  /** As a field for date and time has it, in local time. */
  readonly after: string;
  readonly before: string;
}

const timeOf = (local: string): string | undefined => {
  // Browsers read much as a time that is none: `2026-` would be the beginning of the year.
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(local) ? Date.parse(local) : Number.NaN;
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
};

/** What is asked of the API. A category with a dot is the type of an event. */
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
