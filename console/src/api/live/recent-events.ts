import { type AuditEvent, listAudit } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { call } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { onLiveMessage } from './event-stream.ts';
import { maxEvents as most, withNewer } from './newest-events.ts';

/** Asked for once; what comes after is added from the stream. Not under the key of the log: events do not make it stale. */
const recentEventsQuery = queryOptions({
  queryKey: ['recent-events'],
  // Nobody listens while nobody looks: it is asked for anew then.
  gcTime: 0,
  queryFn: async ({ signal }) => (await call(listAudit, { query: { limit: most } as never, signal })).events,
});

/** Milliseconds in which events are gathered before they are drawn. */
const gatherMs = 400;

/** The last events of the log, as they happen. */
export function useRecentEvents() {
  useEffect(() => {
    let gathered: AuditEvent[] = [];
    let timer = 0;
    const stop = onLiveMessage((message) => {
      if (message.kind !== 'event') return;
      gathered.push(message.event);
      if (gathered.length > most) gathered = gathered.slice(-most);
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
