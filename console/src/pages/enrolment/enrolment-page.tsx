import { useQuery } from '@tanstack/react-query';
import { Plus, Radar, Ticket } from 'lucide-react';
import { useState } from 'react';
import { type EnrolmentToken, enrolmentTokensQuery, revokeToken } from '../../api/enrolment.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { told } from '../../parts/dialog/toast.tsx';
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
  good: 'good',
  'used up': 'neutral',
  expired: 'neutral',
  revoked: 'warn',
};

/** How machines come in: a line to paste on them, or a call into the network for agents that wait for one. */
export function EnrolmentPage() {
  const isAdmin = useIsAdmin();
  const [making, setMaking] = useState(false);
  const [discovering, setDiscovering] = useState(false);
  return (
    <Page
      title="Enrolment"
      subtitle="A token lets a machine in by one line that is pasted there. Discovery calls agents that were installed without one."
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
          <Empty title="Tokens are shown to admins">Ask one for the line to paste on a new machine.</Empty>
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
      cell: ({ approve }) => (approve ? 'at once' : 'by an operator'),
    },
    { id: 'expires', header: 'Ends', width: '7rem', from: 'sm', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      id: 'made',
      header: 'Made',
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
        tokenState(token, now) === 'good' && (
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
        label="Enrolment tokens"
        rows={data}
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty
            title="No token was made yet"
            icon={<Ticket className="size-7" strokeWidth={1.4} />}
            action={<Button onClick={onNew}>New token</Button>}
          >
            Make one, paste its line on a machine, and the machine is in the fleet within seconds.
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
          told('The token is useless now');
        }}
      >
        Nobody can enrol with it any more. Agents that came in by it stay.
      </Confirm>
    </>
  );
}
