import {
  type AuditEvent,
  exportAudit,
  getAuditRetention,
  listAudit,
  pruneAudit,
  setAuditRetention,
  verifyAudit,
} from '@muster/protocol/http';
import { infiniteQueryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { newestFirst } from './live/query-invalidation.ts';
import { queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

export interface AuditFilter {
  readonly agent?: string;
  readonly operator?: string;
  readonly event_type?: string;
  readonly category?: string;
  /** RFC 3339, inclusive. */
  readonly after?: string;
  /** RFC 3339, exclusive. */
  readonly before?: string;
}

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: [...keys.audit, filter],
    queryFn: ({ pageParam, signal }) =>
      call(listAudit, {
        query: { ...filter, limit: '100', ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    meta: newestFirst,
  });

/** Discards all loaded pages and fetches the first one again. */
export const reloadNewest = (filter: AuditFilter) =>
  queryClient.resetQueries({ queryKey: auditQuery(filter).queryKey });

/**
 * Returns a notification's event, or null if it was removed from the audit log.
 * @param at Unix milliseconds
 */
export async function findEvent(id: string, event_type: string, at: number): Promise<AuditEvent | null> {
  // The orchestrator creates a notification at the same time as its event, or a moment later.
  const [after, before] = [at - 1_000, at + 1_000].map((ms) => new Date(ms).toISOString());
  const { events } = await call(listAudit, {
    query: { event_type, limit: '500', ...(after && before ? { after, before } : {}) },
  });
  return events.find((event) => event.id === id) ?? null;
}

export const retentionQuery = routeQuery(keys.retention, getAuditRetention, {});

export const setRetention = (retention_days: number | null) => call(setAuditRetention, { body: { retention_days } });

export const verifyChain = (signal?: AbortSignal) => call(verifyAudit, signal ? { signal } : {});

/**
 * Removes the events before a time, or only counts these events.
 * @param before RFC 3339
 */
export const prune = (before: string, mode: 'count' | 'remove') =>
  call(pruneAudit, { query: { before, ...(mode === 'count' ? { dry_run: 'true' as const } : {}) } });

export async function exportEvents(filter: AuditFilter): Promise<Blob> {
  const { body } = await call(exportAudit, { query: { ...filter } });
  const pieces: BlobPart[] = [];
  for await (const piece of body) pieces.push(piece as Uint8Array<ArrayBuffer>);
  return new Blob(pieces, { type: 'application/jsonl' });
}
