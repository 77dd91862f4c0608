import { eventSentence } from '@muster/protocol/event-sentence';
import type { Agent, AuditEvent } from '@muster/protocol/http';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { auditQuery } from '../../api/audit.ts';
import { agentDriftQuery } from '../../api/drift.ts';
import { operationsQuery } from '../../api/operations.ts';
import { terminalsQuery } from '../../api/terminals/terminals.ts';
import { Dot } from '../../parts/badge.tsx';
import { buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Empty } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { PagedList } from '../../parts/table/paged-list.tsx';
import { Line } from '../../parts/text.tsx';
import { Time, withLocalTimes } from '../../parts/time.tsx';
import { KindBadge, StatusDot } from '../../parts/work-status.tsx';
import { foldPlanEvents } from '../audit/plan-events.ts';
import { CheckNow } from '../drift/check-now.tsx';
import { DriftFindings } from '../drift/drift-findings.tsx';
import { DriftStatus, triggerWords } from '../drift/drift-status.tsx';
import { OperatorName } from '../links.tsx';
import { eventTone } from '../notifications/event-tones.ts';
import { opensTerminal } from '../terminals/opens-terminal.ts';
import { statusTones, statusWords } from '../terminals/session-text.ts';
import { ViewersLine } from '../terminals/viewers.tsx';
import { agentParam, displayName, hasTerminalsDisabled } from './agent-state.ts';

const rowClasses =
  'flex min-h-10 max-sm:min-h-11 items-center gap-3 px-4 py-1 text-sm hover:bg-hover [content-visibility:auto] focus-visible:outline-offset-[-2px]';
const age = 'w-18 shrink-0 text-right text-muted text-xs';

/**
 * Lists an agent's operations.
 * @param maxItems if set, shows only this many operations, and omits plans, which change nothing
 */
export function OperationsList({
  agent,
  title,
  maxItems,
}: {
  readonly agent: Agent;
  readonly title?: string;
  readonly maxItems?: number;
}) {
  const query = useInfiniteQuery(operationsQuery({ agent: agent.node_id }));
  const operations = query.data?.pages
    .flatMap((page) => page.operations)
    .filter(({ kind }) => maxItems === undefined || kind !== 'plan');
  return (
    <PagedList
      label="Operations"
      {...(title !== undefined && { title })}
      query={maxItems === undefined ? query : { error: query.error, refetch: query.refetch }}
      items={operations?.slice(0, maxItems)}
      empty={
        <Empty title={maxItems === undefined ? 'No operations yet' : 'No apply yet'}>
          A plan shows what an apply would change.
        </Empty>
      }
    >
      {({ operation_id, kind, status, summary, error, created_at, requested_by }) => (
        <li key={operation_id}>
          <Link
            to="/operations/$operation"
            params={{ operation: operation_id }}
            className={classNames(rowClasses, 'max-sm:flex-wrap max-sm:gap-y-0 max-sm:py-2')}
          >
            <span className="w-12 shrink-0">
              <KindBadge kind={kind} />
            </span>
            <span className="w-24 shrink-0">
              <StatusDot status={status} />
            </span>
            {/* A phone is too narrow for one line. */}
            <span className="flex min-w-0 flex-1 max-sm:order-last max-sm:basis-full max-sm:pl-15">
              {error !== null && summary.total === 0 ? (
                <span className="flex min-w-0 text-bad">
                  <Line text={operationErrorText(error)} />
                </span>
              ) : (
                <SummaryLine summary={summary} resultKind={kind} />
              )}
            </span>
            <span
              className={classNames(
                'flex w-28 min-w-0 shrink-0 text-muted text-xs',
                maxItems === undefined ? 'max-md:hidden' : 'max-2xl:hidden',
              )}
            >
              <OperatorName id={requested_by} />
            </span>
            <span className={classNames(age, 'max-sm:ml-auto')}>
              <Time at={created_at} />
            </span>
          </Link>
        </li>
      )}
    </PagedList>
  );
}

export function DriftList({ agent }: { readonly agent: Agent }) {
  const query = useQuery(agentDriftQuery(agent.node_id));
  return (
    <PagedList
      label="Checks"
      query={query}
      items={query.data}
      empty={
        <Empty
          title="Not checked yet"
          action={
            agent.status === 'approved' &&
            agent.connected && <CheckNow node_id={agent.node_id} name={displayName(agent)} />
          }
        >
          After the first apply, drift is checked on a schedule and on demand.
        </Empty>
      }
    >
      {(record) => (
        <li key={record.drift_id}>
          <Link
            to="/drift/$record"
            params={{ record: record.drift_id }}
            className={classNames(rowClasses, 'max-sm:flex-wrap max-sm:gap-y-0 max-sm:py-2')}
          >
            <span className="w-28 shrink-0">
              <DriftStatus record={record} />
            </span>
            {/* A phone is too narrow for one line. */}
            <span className="flex min-w-0 flex-1 max-sm:order-last max-sm:basis-full max-sm:pl-4">
              <DriftFindings record={record} />
            </span>
            <span className="w-32 shrink-0 text-muted text-xs max-md:hidden">{triggerWords[record.trigger]}</span>
            <span className={classNames(age, 'max-sm:ml-auto')}>
              <Time at={record.checked_at} />
            </span>
          </Link>
        </li>
      )}
    </PagedList>
  );
}

export function TerminalsList({ agent }: { readonly agent: Agent }) {
  const query = useInfiniteQuery(terminalsQuery(''));
  return (
    <PagedList
      label="Terminal sessions"
      query={query}
      items={query.data?.pages.flat().filter(({ node_id }) => node_id === agent.node_id)}
      empty={
        <Empty title="No terminal sessions yet" action={<OpenTerminal agent={agent} />}>
          Terminal sessions are recorded. You can replay them here.
        </Empty>
      }
    >
      {({ session_id, status, operator_id, opened_at, closed_at, attached }) => (
        <li key={session_id}>
          <Link to="/terminals/$session" params={{ session: session_id }} className={rowClasses}>
            <span className="w-24 shrink-0">
              <Dot tone={statusTones[status]} live={status === 'active'}>
                {statusWords[status]}
              </Dot>
            </span>
            <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3">
              <OperatorName id={operator_id} />
              <ViewersLine attached={attached} />
            </span>
            <span className="w-28 shrink-0 text-muted text-xs max-sm:hidden">
              {closed_at === null ? (
                ''
              ) : (
                <>
                  closed <Time at={closed_at} />
                </>
              )}
            </span>
            <span className={age}>
              <Time at={opened_at} />
            </span>
          </Link>
        </li>
      )}
    </PagedList>
  );
}

/** Opens a terminal immediately, in the default shell. */
function OpenTerminal({ agent }: { readonly agent: Agent }) {
  if (agent.status !== 'approved' || !agent.connected || hasTerminalsDisabled(agent)) return null;
  return (
    <Link
      to="/terminals/new/$agent"
      params={{ agent: agentParam(agent) }}
      state={opensTerminal}
      className={buttonClasses('plain')}
      preload={false}
    >
      Open terminal
    </Link>
  );
}

export function HistoryList({ agent }: { readonly agent: Agent }) {
  const query = useInfiniteQuery(auditQuery({ agent: agent.node_id }));
  const events = query.data?.pages.flatMap((page) => page.events);
  return (
    <PagedList
      label="History"
      query={query}
      items={events && foldPlanEvents(events)}
      empty={<Empty title="No audit events">Old events are removed when their retention ends.</Empty>}
    >
      {(folded) =>
        'event' in folded ? (
          <HistoryRow key={folded.event.id} agent={agent} event={folded.event} />
        ) : (
          <PlanRows key={folded.plans[0].id} agent={agent} events={folded.plans} />
        )
      }
    </PagedList>
  );
}

function HistoryRow({ agent, event }: { readonly agent: Agent; readonly event: AuditEvent }) {
  return (
    <li>
      <Link to="/audit" search={{ agent: agent.node_id, event: event.id } as never} className={rowClasses}>
        <Dot tone={eventTone(event)} />
        <span className="wraps-names flex min-w-0 flex-1">
          <Line text={withLocalTimes(eventSentence(event))} maxLength={300} />
        </span>
        <span className="flex w-28 min-w-0 shrink-0 text-muted text-xs max-md:hidden">
          <Line text={event.actor.name || event.actor.type} maxLength={40} />
        </span>
        <span className={age}>
          <Time at={event.timestamp} />
        </span>
      </Link>
    </li>
  );
}

/** Consecutive plan events as one line, which expands to the events. */
function PlanRows({
  agent,
  events,
}: {
  readonly agent: Agent;
  readonly events: readonly [AuditEvent, ...AuditEvent[]];
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className={classNames(rowClasses, 'w-full text-left text-muted')}
      >
        <ChevronRight
          aria-hidden="true"
          className={classNames('-mx-1 size-4 transition-transform duration-100', isOpen && 'rotate-90')}
        />
        <span className="min-w-0 flex-1">{events.length} events of plans, which changed nothing</span>
        <span className={age}>
          <Time at={events[0].timestamp} />
        </span>
      </button>
      {isOpen && (
        <ul aria-label="Events of plans" className="divide-y border-t">
          {events.map((event) => (
            <HistoryRow key={event.id} agent={agent} event={event} />
          ))}
        </ul>
      )}
    </li>
  );
}
