import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { linkClasses } from '../../parts/class-names.ts';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime } from '../../parts/time.tsx';
import { OperationLink, OperatorName, RunLink } from '../links.tsx';
import { eventLabel } from '../notifications/event-labels.ts';
import { type EventField, fieldsOf } from './event-fields.ts';
import { TargetLink } from './target-link.tsx';

/** The details of an open event: its time, type, actor, and target, and fields that its sentence omits. */
export function EventDetails({ event }: { readonly event: AuditEvent }) {
  const { timestamp, event_type, actor, target, id } = event;
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1 pr-4 pb-3 pl-12 text-sm max-sm:pl-4">
      <Row name="Time">{absoluteTime(Date.parse(timestamp))}</Row>
      <Row name="Type">
        {eventLabel(event_type)}
        <code className="font-mono text-muted text-xs">{event_type}</code>
      </Row>
      <Row name="Actor">
        <Line text={actor.name || actor.id || actor.type} maxLength={100} />
        {actor.name + actor.id !== '' && <Kind type={actor.type} />}
      </Row>
      {target.type + target.id !== '' && (
        <Row name="Target">
          <TargetLink party={target} />
          {target.name + target.id !== '' && <Kind type={target.type} />}
        </Row>
      )}
      {fieldsOf(event, eventSentence(event)).map((field) => (
        <Row key={field.key} name={field.label}>
          <Value field={field} />
        </Row>
      ))}
      <Row name="Event">
        <code className="font-mono text-muted text-xs">{id}</code>
      </Row>
    </dl>
  );
}

const Row = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div className="contents">
    <dt className="text-muted">
      <Line text={name} />
    </dt>
    <dd className="flex min-w-0 flex-wrap items-baseline gap-x-2">{children}</dd>
  </div>
);

const Kind = ({ type }: { readonly type: string }) => (
  <span className="text-muted text-xs">
    <Line text={type.replaceAll('_', ' ')} maxLength={40} />
  </span>
);

/** A field, as a link or a name if it is an id. */
function Value({ field: { key, text } }: { readonly field: EventField }) {
  switch (key) {
    case 'operation_id':
      return <OperationLink id={text} />;
    case 'run_id':
    case 'plan_run_id':
      return <RunLink id={text} />;
    case 'drift_id':
      return (
        <Link to="/drift/$record" params={{ record: text }} className={linkClasses}>
          <code className="font-mono text-xs">…{text.slice(-8)}</code>
        </Link>
      );
    case 'requested_by':
    case 'operator_id':
      return <OperatorName id={text} />;
    default:
      return <Text text={text} maxLength={500} />;
  }
}
