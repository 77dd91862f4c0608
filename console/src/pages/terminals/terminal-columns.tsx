import type { TerminalSession } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { Dot } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import type { Column } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { shortDuration, Time } from '../../parts/time.tsx';
import { AgentName } from '../links.tsx';
import { secondsOf, statusTones, statusWords } from './session-text.ts';
import { ViewersLine, viewersText } from './viewers.tsx';

type Names = ReadonlyMap<string, string>;

/** @param now Unix seconds */
export function terminalColumns({
  operators,
  now,
  mayJoin,
  onEnd,
}: {
  readonly operators: Names;
  readonly now: number;
  readonly mayJoin: (session: TerminalSession) => boolean;
  readonly onEnd: (session: TerminalSession) => void;
}): readonly Column<TerminalSession>[] {
  return [
    {
      id: 'agent',
      header: 'Agent',
      width: 'minmax(8rem,2fr)',
      cell: ({ node_id, session_id, attached }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <Link
            to={'/terminals/$session' as never}
            params={{ session: session_id } as never}
            className={nameLinkClasses}
          >
            <AgentName id={node_id} />
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
          {statusWords[session.status]}
        </Dot>
      ),
    },
    {
      id: 'operator',
      header: 'Operator',
      width: '1.2fr',
      from: 'sm',
      phone: 'line',
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
      phone: 'end',
      cell: (session) => <Actions session={session} mayJoin={mayJoin(session)} onEnd={() => onEnd(session)} />,
    },
  ];
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
      <Link {...to} className={buttonClasses('plain', true)}>
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
