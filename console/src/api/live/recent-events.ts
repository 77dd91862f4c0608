import { type AuditEvent, listAudit } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { call } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { onLiveMessage } from './events.ts';
import { maxEvents, newestEvents, withNewer } from './newest-events.ts';
import { isPlanEvent } from './plan-events.ts';

/**
 * Fetched once; the event stream adds later events. The key differs from the audit log's, so that events do not mark
 * this query as stale.
 */
const recentEventsQuery = queryOptions({
  queryKey: ['recent-events'],
  // The list misses events while no page that shows it is open, so the page fetches the list again when it opens.
  gcTime: 0,
  queryFn: ({ signal }) =>
    newestEvents((cursor) =>
      call(listAudit, { query: { limit: 2 * maxEvents, ...(cursor === null ? {} : { cursor }) } as never, signal }),
    ),
});

/** Maximum delay before new events are rendered, to batch them. */
const gatherMs = 400;

/** Returns the newest events in the audit log without those of plans, updated from the event stream. */
export function useRecentEvents() {
  useEffect(() => {
    let gathered: AuditEvent[] = [];
    let timer = 0;
    const stop = onLiveMessage((message) => {
      if (message.kind !== 'event') return;
      if (isPlanEvent(message.event)) return;
      gathered.push(message.event);
      if (gathered.length > maxEvents) gathered = gathered.slice(-maxEvents);
      timer ||= window.setTimeout(() => {
        timer = 0;
        const newer = gathered;
        gathered = [];
        queryClient.setQueryData(recentEventsQuery.queryKey, (events) => events && withNewer(events, newer));
      }, gatherMs);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, []);
  return useQuery(recentEventsQuery);
}
