import type { AuditEvent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { useRecentEvents } from '../../api/live/recent-events.ts';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { pathOf } from '../audit/target-link.tsx';
import { eventAddress } from './event-address.ts';

const tones: Record<AuditEvent['severity'], Tone> = { info: 'neutral', warning: 'warn', critical: 'bad' };
const words: Record<AuditEvent['severity'], string> = { info: '', warning: 'warning: ', critical: 'critical: ' };

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
        <SkeletonRows rows={8} />
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : query.data.length === 0 ? (
        <Empty title="No events yet" />
      ) : (
        <section className="max-h-128 overflow-y-auto" aria-label="Recent events" tabIndex={0}>
          <ol className="divide-y">
            {query.data.map((event) => (
              <li key={event.id} className="flex items-center gap-2.5 px-4 py-1.5 text-sm">
                <Dot tone={tones[event.severity]} />
                <span className="flex min-w-0 flex-1">
                  <EventText event={event} />
                </span>
                <span className="flex max-w-28 shrink-0 text-muted text-xs max-sm:hidden">
                  <Line text={event.actor.name || event.actor.type} />
                </span>
                <span className="w-16 shrink-0 text-right text-muted text-xs">
                  <Time at={event.timestamp} />
                </span>
              </li>
            ))}
          </ol>
        </section>
      )}
    </Panel>
  );
}

function EventText({ event }: { readonly event: AuditEvent }) {
  const address = eventAddress(event) ?? pathOf(event.target);
  const text = (
    <>
      {words[event.severity] !== '' && <span className="sr-only">{words[event.severity]}</span>}
      <Line text={event.summary} />
    </>
  );
  if (address === null) return text;
  return (
    <Link to={address as '/'} className="flex min-w-0 rounded hover:underline">
      {text}
    </Link>
  );
}
