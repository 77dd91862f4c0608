import type { AuditEvent } from '@muster/protocol/http';

const pages = [
  ['operation_id', '/operations'],
  ['run_id', '/runs'],
  ['drift_id', '/drift'],
  ['session_id', '/terminals'],
] as const;

/** The page of what an event tells of, where that is more than its target. Pure. */
export function eventAddress({ metadata }: Pick<AuditEvent, 'metadata'>): string | null {
  for (const [field, page] of pages) {
    const id = metadata[field];
    if (typeof id === 'string' && id !== '') return `${page}/${encodeURIComponent(id)}`;
  }
  return null;
}
