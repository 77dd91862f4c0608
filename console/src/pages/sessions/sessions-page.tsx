import { useQuery } from '@tanstack/react-query';
import { LogOut, MonitorSmartphone } from 'lucide-react';
import { useState } from 'react';
import { endOneSession, type SignInSession, sessionsQuery, signOutEverywhere } from '../../api/sign-in/sessions.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { programName } from './program-name.ts';

export function SessionsPage() {
  const query = useQuery(sessionsQuery);
  const [ending, setEnding] = useState<SignInSession | null>(null);
  const [endingAll, setEndingAll] = useState(false);
  return (
    <ListPage
      title="Sessions"
      description="Browsers and programs that are signed in as you."
      actions={
        <Button icon={<LogOut className="size-4" />} onClick={() => setEndingAll(true)}>
          Sign out everywhere
        </Button>
      }
      query={query}
      rows={query.data}
      sortedBy="-used"
      columns={columns(setEnding)}
      rowKey={({ id }) => id}
      empty={<Empty title="No sessions" icon={<MonitorSmartphone />} />}
    >
      <Confirm
        open={ending !== null}
        onOpenChange={() => setEnding(null)}
        title={ending?.current ? 'Sign out here?' : `End the session of ${programName(ending?.user_agent ?? null)}?`}
        action={ending?.current ? 'Sign out' : 'End session'}
        onConfirm={async () => {
          if (ending === null) return;
          await endOneSession(ending);
          if (ending.current) return;
          notify('Session ended');
          await query.refetch();
        }}
      >
        It ends immediately, with its open pages and terminal connections.
      </Confirm>
      <Confirm
        open={endingAll}
        onOpenChange={setEndingAll}
        title="Sign out everywhere?"
        action="Sign out everywhere"
        onConfirm={signOutEverywhere}
      >
        Ends all your sessions, including this one. Programs with your key can sign in again.
      </Confirm>
    </ListPage>
  );
}

const columns = (onEnd: (session: SignInSession) => void): readonly Column<SignInSession>[] => [
  {
    id: 'program',
    header: 'Program',
    width: 'minmax(9rem,3fr)',
    cell: ({ user_agent, kind, current }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Line text={programName(user_agent)} />
        {current && <Badge>this browser</Badge>}
        {kind === 'token' && <Badge>token</Badge>}
      </span>
    ),
  },
  {
    id: 'address',
    header: 'Address',
    width: '1fr',
    from: 'sm',
    phone: 'line',
    cell: ({ address }) => <Line text={address ?? '–'} />,
  },
  {
    id: 'signed_in',
    header: 'Signed in',
    width: '6rem',
    from: 'md',
    sort: ({ signed_in_at }) => signed_in_at,
    cell: ({ signed_in_at }) => <Time at={signed_in_at} />,
  },
  {
    id: 'used',
    header: 'Last used',
    width: '6rem',
    from: 'sm',
    phone: 'labeled',
    sort: ({ last_used_at, signed_in_at }) => last_used_at ?? signed_in_at,
    cell: ({ last_used_at, signed_in_at }) => <Time at={last_used_at ?? signed_in_at} />,
  },
  { id: 'expires', header: 'Expires', width: '6rem', from: 'md', cell: ({ expires_at }) => <Time at={expires_at} /> },
  {
    id: 'actions',
    header: 'Actions',
    width: '6rem',
    phone: 'end',
    align: 'right',
    cell: (session) => (
      <Button small onClick={() => onEnd(session)}>
        {session.current ? 'Sign out' : 'End'}
      </Button>
    ),
  },
];
