import type { AuditEvent } from '@muster/protocol/http';
import { ChevronRight } from 'lucide-react';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime, Time } from '../../parts/time.tsx';
import { TargetLink } from './target-link.tsx';

const tones: Record<AuditEvent['severity'], Tone> = { info: 'neutral', warning: 'warn', critical: 'bad' };

export function EventRow({
  event,
  open,
  onToggle,
}: {
  readonly event: AuditEvent;
  readonly open: boolean;
  readonly onToggle: () => void;
}) {
  return (
    <li className={classNames('[content-visibility:auto]', open && 'bg-raised')}>
      <div className="flex min-h-10 items-center gap-2 px-3 py-1 text-sm sm:gap-3">
        <button
          type="button"
          aria-expanded={open}
          aria-label={`Details of ${event.event_type} at ${absoluteTime(Date.parse(event.timestamp))}`}
          onClick={onToggle}
          className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:bg-hover"
        >
          <ChevronRight aria-hidden="true" className={classNames('size-4 transition-transform', open && 'rotate-90')} />
        </button>
        <Dot tone={tones[event.severity]} />
        <span className="w-16 shrink-0 text-muted text-xs">
          <Time at={event.timestamp} />
        </span>
        <code className="w-44 shrink-0 truncate font-mono text-xs max-lg:hidden">{event.event_type}</code>
        <span className="flex min-w-0 flex-1">
          <Line text={event.summary} maxLength={300} />
        </span>
        <span className="flex w-32 min-w-0 shrink-0 text-muted text-xs max-md:hidden">
          <Line text={event.actor.name || event.actor.type} />
        </span>
        <span className="flex w-36 min-w-0 shrink-0 text-xs max-md:hidden">
          <TargetLink party={event.target} />
        </span>
      </div>
      {open && <Details event={event} />}
    </li>
  );
}

function Details({ event }: { readonly event: AuditEvent }) {
  const rows: [string, React.ReactNode][] = [
    ['when', absoluteTime(Date.parse(event.timestamp))],
    ['type', <Badge key="type">{event.event_type}</Badge>],
    ['by', <Text key="by" text={[event.actor.type, event.actor.name, event.actor.id].filter(Boolean).join(' · ')} />],
    ['to', <TargetLink key="to" party={event.target} />],
    [
      'id',
      <code key="id" className="font-mono text-xs">
        {event.id}
      </code>,
    ],
    ...Object.entries(event.metadata).map(([key, value]): [string, React.ReactNode] => [
      key,
      <Text key={key} text={typeof value === 'string' ? value : JSON.stringify(value)} maxLength={500} />,
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
