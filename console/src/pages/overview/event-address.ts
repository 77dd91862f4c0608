import type { AuditEvent } from '@muster/protocol/http';

const pages = [
  ['operation_id', '/operations'],
  ['run_id', '/runs'],
  ['drift_id', '/drift'],
  ['session_id', '/terminals'],
] as const;

/**
 * Returns the path of the operation, run, drift record, or terminal session that an event names, or null if it names
 * none.
 */
export function eventAddress({ metadata }: Pick<AuditEvent, 'metadata'>): string | null {
  for (const [field, page] of pages) {
    const id = metadata[field];
    if (typeof id === 'string' && id !== '') return `${page}/${encodeURIComponent(id)}`;
  }
  return null;
}
