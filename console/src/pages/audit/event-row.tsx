import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { ChevronRight } from 'lucide-react';
import { Dot } from '../../parts/badge.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime, Time, withLocalTimes } from '../../parts/time.tsx';
import { eventLabel } from '../notifications/event-labels.ts';
import { eventTone } from '../notifications/event-tones.ts';
import { TargetLink } from './target-link.tsx';

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
          aria-label={`Details of ${event.event_type} at ${absoluteTime(Date.parse(event.timestamp))}`}
          onClick={onToggle}
          className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:bg-hover max-sm:-ml-3 max-sm:size-11"
        >
          <ChevronRight aria-hidden="true" className={classNames('size-4 transition-transform', open && 'rotate-90')} />
        </button>
        <Dot tone={eventTone(event)} />
        <span className="w-44 shrink-0 truncate text-muted max-lg:hidden" title={event.event_type}>
          {eventLabel(event.event_type)}
        </span>
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
      {open && <Details event={event} />}
    </li>
  );
}

/** The column headers of the list. */
export const EventHeader = () => (
  <div className="flex h-9 items-center gap-2 px-4 font-medium text-muted text-xs sm:gap-3">
    <span className="w-6 shrink-0 max-sm:w-8" />
    <span className="w-2 shrink-0" />
    <span className="w-44 shrink-0 max-lg:hidden">Type</span>
    <span className="min-w-0 flex-1">Event</span>
    <span className="w-32 shrink-0 max-md:hidden">Actor</span>
    <span className="w-16 shrink-0 text-right">Time</span>
  </div>
);

/** Formats a value of an event's metadata. */
function valueText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return withLocalTimes(value);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  // A flat object, such as the counts in an operation's summary.
  if (entries.length > 0 && entries.every(([, each]) => ['string', 'number', 'boolean'].includes(typeof each)))
    return entries.map(([key, each]) => `${key.replaceAll('_', ' ')} ${each}`).join(', ');
  return JSON.stringify(value);
}

function Details({ event }: { readonly event: AuditEvent }) {
  const { timestamp, event_type, actor, target, id, metadata } = event;
  const code = (text: string) => <code className="font-mono text-xs">{text}</code>;
  const rows: [string, React.ReactNode][] = [
    ['Time', absoluteTime(Date.parse(timestamp))],
    [
      'Type',
      <span key="type" className="inline-flex flex-wrap items-baseline gap-x-2">
        {eventLabel(event_type)}
        <span className="text-muted">{code(event_type)}</span>
      </span>,
    ],
    ['Actor', <Text key="actor" text={[actor.type, actor.name, actor.id].filter(Boolean).join(' · ')} />],
    ...(target.type === '' && target.id === ''
      ? []
      : [['Target', <TargetLink key="target" party={target} />] satisfies [string, React.ReactNode]]),
    ['Event id', code(id)],
    ...Object.entries(metadata)
      .filter(([, value]) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0))
      .map(([key, value]): [string, React.ReactNode] => [
        labelOf(key),
        <Text key={key} text={valueText(value)} maxLength={500} />,
      ]),
  ];
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1 px-12 pt-1 pb-3 text-sm">
      {rows.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">
            <Line text={name} />
          </dt>
          <dd className="min-w-0">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns a metadata key as a label, such as `Operation id` for `operation_id`. */
function labelOf(key: string): string {
  const words = key.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
