import type { TerminalSession } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { SquareTerminal } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useAgentNames } from '../../api/agents.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { usePerson } from '../../api/sign-in/use-session.ts';
import { closeTerminal, terminalsQuery } from '../../api/terminals.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { shortDuration, Time, useNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { secondsOf, statusTones } from './session-text.ts';
import { ViewersLine, viewersText } from './viewers.tsx';

const statuses = ['', 'active', 'closed', 'interrupted'] as const;
type Status = (typeof statuses)[number];
const statusLabels: Record<Status, string> = {
  '': 'All sessions',
  active: 'Open',
  closed: 'Closed',
  interrupted: 'Interrupted',
};

export function TerminalsPage() {
  const person = usePerson();
  const navigate = useNavigate();
  const agents = useAgentNames();
  const operators = useOperatorNames();
  const now = Math.floor(useNow() / 1000);
  const [status, setStatus] = useUrlState<Status>('status', '');
  const [search, setSearch] = useUrlState('q', '');
  const [ending, setEnding] = useState<TerminalSession | null>(null);
  const query = useInfiniteQuery(terminalsQuery(statuses.includes(status) ? status : ''));
  const all = useMemo(() => query.data?.pages.flat() ?? [], [query.data]);
  const mayJoin = (session: TerminalSession) => session.operator_id === person.operator_id || person.role === 'admin';
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    if (wanted === '') return all;
    const contains = (text: string | undefined) => text?.toLowerCase().includes(wanted) ?? false;
    return all.filter(
      ({ node_id, operator_id, session_id }) =>
        contains(agents.get(node_id)) ||
        contains(operators.get(operator_id)) ||
        contains(session_id) ||
        contains(node_id),
    );
  }, [all, search, agents, operators]);

  const columns: Column<TerminalSession>[] = [
    {
      id: 'agent',
      header: 'Agent',
      width: 'minmax(8rem,2fr)',
      cell: ({ node_id, session_id, attached }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <Link
            to={'/terminals/$session' as never}
            params={{ session: session_id } as never}
            className="min-w-0 truncate font-medium hover:underline"
          >
            <Line text={agents.get(node_id) ?? node_id} />
          </Link>
          <span className="lg:hidden">
            <ViewersLine attached={attached} />
          </span>
        </span>
      ),
    },
    {
      id: 'status',
      header: 'Status',
      width: '7rem',
      cell: (session) => (
        <Dot tone={statusTones[session.status]} live={session.status === 'active'}>
          {session.status}
        </Dot>
      ),
    },
    {
      id: 'operator',
      header: 'Operator',
      width: '1.2fr',
      from: 'sm',
      cell: ({ operator_id }) => <Line text={operators.get(operator_id) ?? operator_id} />,
    },
    { id: 'since', header: 'Opened', width: '6rem', cell: ({ opened_at }) => <Time at={opened_at} /> },
    {
      id: 'duration',
      header: 'Duration',
      width: '4.5rem',
      from: 'md',
      align: 'right',
      cell: (session) => <span className="tabular">{shortDuration(secondsOf(session, now))}</span>,
    },
    {
      id: 'viewers',
      header: 'Connected',
      width: '1.5fr',
      from: 'lg',
      cell: ({ attached, status: is }) =>
        is !== 'active' ? (
          <span className="text-muted">–</span>
        ) : attached.length === 0 ? (
          <span className="text-muted">none</span>
        ) : (
          <Line text={viewersText(attached)} />
        ),
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '10rem',
      align: 'right',
      from: 'sm',
      cell: (session) => <Actions session={session} mayJoin={mayJoin(session)} onEnd={() => setEnding(session)} />,
    },
  ];

  return (
    <Page
      fill
      title="Terminals"
      subtitle="Shell sessions on machines. Join open sessions, replay ended ones."
      actions={
        <>
          <div className="w-44">
            <Input
              label="Search"
              hideLabel
              type="search"
              data-search=""
              placeholder="Agent or operator"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          </div>
          <div className="w-36">
            <Select
              label="Status"
              hideLabel
              value={status}
              onChange={(event) => setStatus(event.target.value as Status)}
            >
              {statuses.map((each) => (
                <option key={each} value={each}>
                  {statusLabels[each]}
                </option>
              ))}
            </Select>
          </div>
        </>
      }
    >
      <Panel flush className="flex h-full min-h-0 flex-col overflow-hidden">
        {query.isPending ? (
          <SkeletonRows />
        ) : query.isError && query.data === undefined ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : (
          <>
            <DataTable
              label="Terminal sessions"
              rows={rows}
              columns={columns}
              rowKey={({ session_id }) => session_id}
              onOpen={({ session_id }) =>
                void navigate({ to: '/terminals/$session' as never, params: { session: session_id } as never })
              }
              empty={
                search !== '' || status !== '' ? (
                  <Empty title="No matching sessions">Try another search, or show all sessions.</Empty>
                ) : (
                  <Empty
                    title="No terminal sessions yet"
                    icon={<SquareTerminal className="size-7" strokeWidth={1.4} />}
                    action={
                      <Link to="/agents" className={buttonClasses('primary')}>
                        Choose an agent
                      </Link>
                    }
                  >
                    Open one from the page of an agent. Its configuration must contain “remote_terminal: enabled: true”.
                  </Empty>
                )
              }
            />
            {query.hasNextPage && (
              <div className="border-t p-2 text-center">
                <Button small busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  Show older
                </Button>
              </div>
            )}
          </>
        )}
      </Panel>
      <Confirm
        open={ending !== null}
        onOpenChange={(open) => !open && setEnding(null)}
        title="End this session?"
        action="End the session"
        onConfirm={async () => {
          if (ending !== null) await closeTerminal(ending.session_id);
        }}
      >
        This ends its shell on <Line text={agents.get(ending?.node_id ?? '') ?? ''} /> and all programs in it. The
        recording is kept.
      </Confirm>
    </Page>
  );
}

function Actions({
  session,
  mayJoin,
  onEnd,
}: {
  readonly session: TerminalSession;
  readonly mayJoin: boolean;
  readonly onEnd: () => void;
}) {
  if (!mayJoin) return <span className="text-muted text-xs">not yours</span>;
  const to = { to: '/terminals/$session' as never, params: { session: session.session_id } as never };
  if (session.status !== 'active')
    return (
      <Link {...to} className={buttonClasses('quiet', true)}>
        Replay
      </Link>
    );
  return (
    <span className="flex gap-1">
      <Link {...to} search={{ mode: 'view' } as never} className={buttonClasses('quiet', true)}>
        Watch
      </Link>
      <Button small look="danger" onClick={onEnd}>
        End
      </Button>
    </span>
  );
}
