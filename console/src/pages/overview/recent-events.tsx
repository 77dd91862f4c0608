import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { useRecentEvents } from '../../api/live/recent-events.ts';
import { Dot } from '../../parts/badge.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { lineText } from '../../parts/text.tsx';
import { Time, withLocalTimes } from '../../parts/time.tsx';
import { pathOf } from '../audit/target-link.tsx';
import { eventTone } from '../notifications/event-tones.ts';
import { eventAddress } from './event-address.ts';
import { type EventGroup, groupEvents } from './event-groups.ts';

const words: Record<AuditEvent['severity'], string> = { info: '', warning: 'warning: ', critical: 'critical: ' };

/** The newest events, except those of plans, because plans change nothing. */
export function RecentEvents() {
  const query = useRecentEvents();
  return (
    <Panel
      title="Recent events"
      flush
      actions={
        <Link to="/audit" className="rounded text-accent text-sm hover:underline">
          Audit log
        </Link>
      }
    >
      {query.isPending ? (
        <SkeletonRows rows={8} size="dense" />
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : query.data.length === 0 ? (
        <Empty title="No recent events">Changes, sign-ins, and the results of operations appear here.</Empty>
      ) : (
        <section className="max-h-128 overflow-y-auto" aria-label="Recent events" tabIndex={0}>
          <ol className="divide-y">
            {groupEvents(query.data).map((group) => (
              <GroupLine key={group.event.id} group={group} />
            ))}
          </ol>
        </section>
      )}
    </Panel>
  );
}

function GroupLine({ group: { event, count } }: { readonly group: EventGroup }) {
  const actor = event.actor.name || event.actor.type;
  return (
    <li className="flex items-center gap-2.5 px-4 py-1.5 text-sm">
      <Dot tone={eventTone(event)} />
      <span className="line-clamp-3 min-w-0 flex-1 [overflow-wrap:anywhere]">
        <EventText event={event} />
        {event.actor.type !== 'system' && !event.summary.includes(actor) && (
          <span className="whitespace-nowrap text-muted"> · {lineText(actor, 40)}</span>
        )}
        {count > 1 && (
          <Link
            to="/audit"
            search={{ category: event.event_type } as never}
            className="ml-1.5 whitespace-nowrap rounded text-muted text-xs hover:underline"
          >
            {count - 1} more<span className="sr-only"> similar events</span>
          </Link>
        )}
      </span>
      <span className="shrink-0 text-right text-muted text-xs">
        <Time at={event.timestamp} />
      </span>
    </li>
  );
}

function EventText({ event }: { readonly event: AuditEvent }) {
  const address = eventAddress(event) ?? pathOf(event.target);
  const text = (
    <>
      {words[event.severity] !== '' && <span className="sr-only">{words[event.severity]}</span>}
      <bdi>{lineText(withLocalTimes(eventSentence(event)), 200)}</bdi>
    </>
  );
  if (address === null) return text;
  return (
    <Link to={address as '/'} className="rounded text-accent hover:underline">
      {text}
    </Link>
  );
}
