import type { AuditEvent } from '@muster/protocol/http';

const pages = [
  ['operation_id', '/operations'],
  ['run_id', '/runs'],
  ['drift_id', '/drift'],
  ['session_id', '/terminals'],
] as const;

/** The path of the operation, run, drift record, or session that an event names; null if it names none. Pure. */
export function eventAddress({ metadata }: Pick<AuditEvent, 'metadata'>): string | null {
  for (const [field, page] of pages) {
    const id = metadata[field];
    if (typeof id === 'string' && id !== '') return `${page}/${encodeURIComponent(id)}`;
  }
  return null;
}
