import { type AuditEvent, eventTypes } from '@muster/protocol/http';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { ChevronRight, Download } from 'lucide-react';
import { useMemo, useState } from 'react';
import { auditQuery, exportEvents, reloadNewest } from '../../api/audit.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { Empty, Failure, Newer, SkeletonRows } from '../../parts/states.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { absoluteTime, Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { auditFilterOf } from './audit-filter.ts';
import { Retention } from './retention.tsx';
import { TargetLink } from './target-link.tsx';
import { VerifyButton } from './verify-button.tsx';

const tones: Record<AuditEvent['severity'], Tone> = { info: 'neutral', warning: 'warn', critical: 'bad' };
const categories = [...new Set(Object.keys(eventTypes).map((type) => type.split('.')[0] as string))].toSorted();

export function AuditPage() {
  const [category, setCategory] = useUrlState('category', '');
  const [operator, setOperator] = useUrlState('operator', '');
  const [agent, setAgent] = useUrlState('agent', '');
  const [after, setAfter] = useUrlState('after', '');
  const [before, setBefore] = useUrlState('before', '');
  const [open, setOpen] = useUrlState('event', '');
  const typedOperator = useDebouncedText(operator, setOperator);
  const typedAgent = useDebouncedText(agent, setAgent);
  const [pruning, setPruning] = useState(false);
  const isAdmin = useIsAdmin();
  const filter = useMemo(
    () => auditFilterOf({ category, operator, agent, after, before }),
    [category, operator, agent, after, before],
  );
  const { data, error, isStale, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    auditQuery(filter),
  );
  const save = useMutation({
    mutationFn: async () => saveFile(await exportEvents(filter), 'muster-audit.jsonl'),
    onError: notifyError,
  });
  const events = data?.pages.flatMap((page) => page.events);
  const filtered = Object.keys(filter).length > 0;

  return (
    <Page
      title="Audit log"
      subtitle="Who did what, to what, and when. Each event contains the hash of the previous one."
      actions={
        <>
          <VerifyButton />
          <Button icon={<Download className="size-4" />} busy={save.isPending} onClick={() => save.mutate()}>
            Export
          </Button>
          {isAdmin && <Button onClick={() => setPruning(true)}>Retention…</Button>}
        </>
      }
    >
      <search className="mb-3 grid grid-cols-2 gap-2 sm:grid-cols-3 lg:grid-cols-5">
        <Select label="Event type" value={category} onChange={(event) => setCategory(event.target.value)}>
          <option value="">All types</option>
          {categories.map((name) => (
            <optgroup key={name} label={name}>
              <option value={name}>All {name} events</option>
              {Object.keys(eventTypes)
                .filter((type) => type.startsWith(`${name}.`))
                .map((type) => (
                  <option key={type} value={type}>
                    {type}
                  </option>
                ))}
            </optgroup>
          ))}
        </Select>
        <Input
          label="Operator"
          data-search=""
          placeholder="name or id"
          value={typedOperator.text}
          onChange={(event) => typedOperator.set(event.target.value)}
        />
        <Input
          label="Agent"
          placeholder="name or id"
          value={typedAgent.text}
          onChange={(event) => typedAgent.set(event.target.value)}
        />
        <Input label="From" type="datetime-local" value={after} onChange={(event) => setAfter(event.target.value)} />
        <Input label="Until" type="datetime-local" value={before} onChange={(event) => setBefore(event.target.value)} />
      </search>
      <Panel flush>
        {data && data.pages.length > 1 && isStale && <Newer onShow={() => void reloadNewest(filter)} />}
        {error && !data ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : events === undefined ? (
          <SkeletonRows rows={12} />
        ) : events.length === 0 ? (
          <Empty title={filtered ? 'No matching events' : 'No events yet'}>
            {filtered && 'Try removing a filter, or choose an earlier time.'}
          </Empty>
        ) : (
          <ul aria-label="Events" className="divide-y">
            {events.map((event) => (
              <EventRow
                key={event.id}
                event={event}
                open={open === event.id}
                onToggle={() => setOpen(open === event.id ? '' : event.id)}
              />
            ))}
          </ul>
        )}
        {hasNextPage && (
          <div className="border-t p-3 text-center">
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              Show older
            </Button>
          </div>
        )}
      </Panel>
      {pruning && <Retention onClose={() => setPruning(false)} />}
    </Page>
  );
}

function EventRow({
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
