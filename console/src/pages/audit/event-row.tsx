import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { ChevronRight } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { classNames } from '../../parts/class-names.ts';
import { countedText } from '../../parts/count.ts';
import { Line, lineText, Text } from '../../parts/text.tsx';
import { absoluteTime, Time, withLocalTimes } from '../../parts/time.tsx';
import { eventLabel } from '../notifications/event-labels.ts';
import { EventDetails } from './event-details.tsx';
import { EventIcon } from './event-icon.tsx';
import type { RelatedEvents } from './related-events.ts';

/** An event in one line, with a button that opens its details or its related events. */
function EventLine({
  event,
  open,
  label,
  onToggle,
  more,
  isNested = false,
}: {
  readonly event: AuditEvent;
  readonly open: boolean;
  readonly label: string;
  readonly onToggle: () => void;
  /** Shown after the sentence. */
  readonly more?: ReactNode;
  readonly isNested?: boolean;
}) {
  const sentence = withLocalTimes(eventSentence(event));
  const actor = event.actor.name || event.actor.type;
  return (
    <div className={classNames('flex min-h-9 items-center gap-2 px-4 py-1 text-sm sm:gap-3', isNested && 'sm:pl-12')}>
      <button
        type="button"
        aria-expanded={open}
        aria-label={label}
        onClick={onToggle}
        className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:bg-hover max-sm:order-last max-sm:-mr-3 max-sm:size-11"
      >
        <ChevronRight aria-hidden="true" className={classNames('size-4 transition-transform', open && 'rotate-90')} />
      </button>
      <span className="flex shrink-0 max-sm:sr-only">
        <EventIcon event={event} />
      </span>
      <span className="wraps-names flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2">
        {/* Only an open event shows its whole sentence on a wide screen. */}
        {open && more === undefined ? (
          <Text text={sentence} maxLength={2_000} />
        ) : (
          <Line text={sentence} maxLength={300} />
        )}
        {more}
        {/* A phone has no column for the actor. */}
        {!sentence.startsWith(`${actor} `) && !sentence.includes(` by ${actor}`) && (
          <span className="text-muted text-xs md:hidden">{lineText(actor, 64)}</span>
        )}
      </span>
      <span className="flex w-32 min-w-0 shrink-0 max-md:hidden">
        <Line text={actor} />
      </span>
      <span className="w-16 shrink-0 text-right text-muted text-xs max-sm:w-auto">
        <Time at={event.timestamp} />
      </span>
    </div>
  );
}

const detailsLabel = ({ event_type, timestamp }: AuditEvent): string =>
  `Details of “${eventLabel(event_type)}” on ${absoluteTime(Date.parse(timestamp))}`;

export function EventRow({
  event,
  open,
  onToggle,
  isNested = false,
}: {
  readonly event: AuditEvent;
  readonly open: boolean;
  readonly onToggle: () => void;
  /** Whether the row belongs to the group above it. */
  readonly isNested?: boolean;
}) {
  return (
    <li className={classNames('[content-visibility:auto]', open && 'bg-raised')}>
      <EventLine label={detailsLabel(event)} {...{ event, open, onToggle, isNested }} />
      {open && <EventDetails event={event} />}
    </li>
  );
}

/** The events of an action: one event, or a row that opens to several. */
export function RelatedRows({
  group: { lead, events },
  openId,
  onOpen,
}: {
  readonly group: RelatedEvents;
  /** Id of the event whose details are open; empty if there is none. */
  readonly openId: string;
  readonly onOpen: (id: string) => void;
}) {
  /** Null until the operator opens or closes the row. */
  const [choice, setChoice] = useState<boolean | null>(null);
  const isExpanded = choice ?? events.some(({ id }) => id === openId);
  const row = (event: AuditEvent, isNested: boolean) => (
    <EventRow
      key={event.id}
      open={openId === event.id}
      onToggle={() => onOpen(openId === event.id ? '' : event.id)}
      {...{ event, isNested }}
    />
  );
  if (events.length === 1) return row(lead, false);
  return (
    <li className="[content-visibility:auto]">
      <EventLine
        event={lead}
        open={isExpanded}
        label={`${countedText(events.length, 'event')}: ${detailsLabel(lead)}`}
        onToggle={() => setChoice(!isExpanded)}
        more={
          <span className="shrink-0 text-muted text-xs">
            and {countedText(events.length - 1, 'related event', 'related events')}
          </span>
        }
      />
      {isExpanded && (
        <ul aria-label="Related events" className="divide-y border-t">
          {events.map((event) => row(event, true))}
        </ul>
      )}
    </li>
  );
}

export const DayRow = ({ day }: { readonly day: string }) => (
  <li className="bg-canvas px-4 py-1.5">
    <h2 className="font-medium text-muted text-xs">{day}</h2>
  </li>
);

/** The column headers of the list. */
export const EventHeader = () => (
  <div className="flex h-9 items-center gap-2 px-4 font-medium text-muted text-xs sm:gap-3">
    <span className="w-6 shrink-0 max-sm:hidden" />
    <span className="w-4 shrink-0 max-sm:hidden" />
    <span className="min-w-0 flex-1">Event</span>
    <span className="w-32 shrink-0 max-md:hidden">Actor</span>
    <span className="w-16 shrink-0 text-right max-sm:mr-10">Time</span>
  </div>
);
