import { useQuery } from '@tanstack/react-query';
import { Plus, Radar, Ticket } from 'lucide-react';
import { useState } from 'react';
import { type EnrolmentToken, enrolmentTokensQuery, revokeToken } from '../../api/enrolment.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { Time, useNow } from '../../parts/time.tsx';
import { DiscoverForm } from './discover-form.tsx';
import { TokenForm } from './token-form.tsx';
import { tokenState } from './token-state.ts';

const tones: Readonly<Record<ReturnType<typeof tokenState>, Tone>> = {
  valid: 'good',
  'used up': 'neutral',
  expired: 'neutral',
  revoked: 'warn',
};

/** Enrolls machines by token or by network discovery. */
export function EnrollmentPage() {
  const isAdmin = useIsAdmin();
  const [making, setMaking] = useState(false);
  const [discovering, setDiscovering] = useState(false);
  return (
    <Page
      title="Enrollment"
      subtitle="Enroll a machine with a token and one command, or discover installed agents in the network."
      actions={
        <>
          <Button icon={<Radar className="size-4" />} onClick={() => setDiscovering(true)}>
            Discover
          </Button>
          {isAdmin && (
            <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setMaking(true)}>
              New token
            </Button>
          )}
        </>
      }
    >
      <Panel flush title="Tokens of the last 30 days">
        {isAdmin ? (
          <Tokens onNew={() => setMaking(true)} />
        ) : (
          <Empty title="Only admins can see tokens">Ask an admin for the command to run on a new machine.</Empty>
        )}
      </Panel>
      {making && <TokenForm onClose={() => setMaking(false)} />}
      {discovering && <DiscoverForm onClose={() => setDiscovering(false)} />}
    </Page>
  );
}

function Tokens({ onNew }: { readonly onNew: () => void }) {
  const { data, error, refetch } = useQuery(enrolmentTokensQuery);
  const names = useOperatorNames();
  const now = useNow();
  const [revoking, setRevoking] = useState<EnrolmentToken | null>(null);
  const columns: Column<EnrolmentToken>[] = [
    {
      id: 'name',
      header: 'For',
      width: '2fr',
      cell: ({ name, tags }) => (
        <span className="flex min-w-0 items-center gap-1.5">
          {name === null ? <span className="text-muted">any machine</span> : <Line text={name} />}
          <span className="flex min-w-0 gap-1.5 max-sm:hidden">
            {Object.entries(tags).map(([key, value]) => (
              <Badge key={key}>
                <Line text={`${key}=${value}`} />
              </Badge>
            ))}
          </span>
        </span>
      ),
    },
    {
      id: 'state',
      header: 'State',
      width: '6rem',
      cell: (token) => <Badge tone={tones[tokenState(token, now)]}>{tokenState(token, now)}</Badge>,
    },
    { id: 'uses', header: 'Uses left', width: '6rem', align: 'right', from: 'sm', cell: ({ uses_left }) => uses_left },
    {
      id: 'approve',
      header: 'Approval',
      width: '8rem',
      from: 'md',
      cell: ({ approve }) => (approve ? 'automatic' : 'manual'),
    },
    { id: 'expires', header: 'Expires', width: '7rem', from: 'sm', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      id: 'made',
      header: 'Created',
      width: '1fr',
      from: 'lg',
      cell: ({ created_at, created_by }) => (
        <span className="truncate">
          <Time at={created_at} /> <span className="text-muted">by {names.get(created_by) ?? created_by}</span>
        </span>
      ),
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '6rem',
      align: 'right',
      cell: (token) =>
        tokenState(token, now) === 'valid' && (
          <Button small look="danger" onClick={() => setRevoking(token)}>
            Revoke
          </Button>
        ),
    },
  ];
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (data === undefined) return <SkeletonRows />;
  return (
    <>
      <DataTable
        label="Enrollment tokens"
        rows={data}
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty
            title="No tokens yet"
            icon={<Ticket className="size-7" strokeWidth={1.4} />}
            action={<Button onClick={onNew}>New token</Button>}
          >
            Create a token and run its command on a machine. The machine joins the fleet within seconds.
          </Empty>
        }
      />
      <Confirm
        open={revoking !== null}
        onOpenChange={() => setRevoking(null)}
        title="Revoke this token?"
        action="Revoke token"
        onConfirm={async () => {
          await revokeToken(revoking?.id ?? '');
          notify('Token revoked');
        }}
      >
        No more agents can enroll with it. Agents that it enrolled stay.
      </Confirm>
    </>
  );
}
