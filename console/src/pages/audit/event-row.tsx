import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { ChevronRight } from 'lucide-react';
import { Dot } from '../../parts/badge.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime, Time, withLocalTimes } from '../../parts/time.tsx';
import { eventLabel } from '../notifications/event-labels.ts';
import { eventTone } from '../notifications/event-tones.ts';
import { EventDetails } from './event-details.tsx';

export function EventRow({
  event,
  open,
  onToggle,
}: {
  readonly event: AuditEvent;
  readonly open: boolean;
  readonly onToggle: () => void;
}) {
  const sentence = withLocalTimes(eventSentence(event));
  return (
    <li className={classNames('[content-visibility:auto]', open && 'bg-raised')}>
      <div className="flex min-h-9 items-center gap-2 px-4 py-1 text-sm sm:gap-3">
        <button
          type="button"
          aria-expanded={open}
          aria-label={`Details of “${eventLabel(event.event_type)}” at ${absoluteTime(Date.parse(event.timestamp))}`}
          onClick={onToggle}
          className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:bg-hover max-sm:-ml-3 max-sm:size-11"
        >
          <ChevronRight aria-hidden="true" className={classNames('size-4 transition-transform', open && 'rotate-90')} />
        </button>
        <Dot tone={eventTone(event)} />
        <span className="wraps-names flex min-w-0 flex-1">
          {/* Only an open event shows its whole sentence on a wide screen. */}
          {open ? <Text text={sentence} maxLength={2_000} /> : <Line text={sentence} maxLength={300} />}
        </span>
        <span className="flex w-32 min-w-0 shrink-0 max-md:hidden">
          <Line text={event.actor.name || event.actor.type} />
        </span>
        <span className="w-16 shrink-0 text-right text-muted text-xs">
          <Time at={event.timestamp} />
        </span>
      </div>
      {open && <EventDetails event={event} />}
    </li>
  );
}

/** The column headers of the list. */
export const EventHeader = () => (
  <div className="flex h-9 items-center gap-2 px-4 font-medium text-muted text-xs sm:gap-3">
    <span className="w-6 shrink-0 max-sm:w-8" />
    <span className="w-2 shrink-0" />
    <span className="min-w-0 flex-1">Event</span>
    <span className="w-32 shrink-0 max-md:hidden">Actor</span>
    <span className="w-16 shrink-0 text-right">Time</span>
  </div>
);
