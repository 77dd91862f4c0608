import { type AuditEvent, listAudit } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { call } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { onLiveMessage } from './event-stream.ts';
import { maxEvents, withNewer } from './newest-events.ts';

/** Fetched once; the stream adds later events. Its key is not the audit log's, so events do not mark it stale. */
const recentEventsQuery = queryOptions({
  queryKey: ['recent-events'],
  // Events are not added while the page is closed, so it is fetched again when it opens.
  gcTime: 0,
  queryFn: async ({ signal }) => (await call(listAudit, { query: { limit: maxEvents } as never, signal })).events,
});

/** Collects events before rendering. */
const gatherMs = 400;

/** The newest events of the audit log, live. */
export function useRecentEvents() {
  useEffect(() => {
    let gathered: AuditEvent[] = [];
    let timer = 0;
    const stop = onLiveMessage((message) => {
      if (message.kind !== 'event') return;
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
