import type { Operator } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { deleteOperator, endedText, operatorsQuery, useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin, usePerson } from '../../api/sign-in/use-session.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Id } from '../../parts/copy.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AddOperator } from './add-operator.tsx';

export function OperatorsPage() {
  const { data, error, refetch } = useQuery(operatorsQuery);
  const isAdmin = useIsAdmin();
  const me = usePerson();
  const names = useOperatorNames();
  const [shown, setShown] = useUrlState<'active' | 'all'>('show', 'active');
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Operator | null>(null);

  const columns: Column<Operator>[] = [
    {
      id: 'username',
      header: 'Name',
      width: '2fr',
      sort: (operator) => operator.username,
      cell: (operator) => (
        <span className="flex min-w-0 items-center gap-2">
          <Line text={operator.username} />
          {operator.operator_id === me.operator_id && <Badge tone="info">you</Badge>}
          {operator.removed_at !== null && <Badge>removed</Badge>}
        </span>
      ),
    },
    {
      id: 'role',
      header: 'Role',
      width: '6rem',
      cell: ({ role }) => <Badge tone={role === 'admin' ? 'warn' : 'neutral'}>{role}</Badge>,
    },
    {
      id: 'added',
      header: 'Added',
      width: '1fr',
      from: 'sm',
      sort: (operator) => operator.added_at,
      cell: ({ added_at, added_by }) => (
        <span className="truncate">
          <Time at={added_at} />{' '}
          <span className="text-muted">
            by {added_by === 'bootstrap' ? 'the configuration' : <Line text={names.get(added_by) ?? added_by} />}
          </span>
        </span>
      ),
    },
    { id: 'id', header: 'Id', width: '9rem', from: 'md', cell: ({ operator_id }) => <Id id={operator_id} /> },
    ...(isAdmin
      ? [
          {
            id: 'actions',
            header: 'Actions',
            width: '6rem',
            align: 'right' as const,
            cell: (operator: Operator) =>
              operator.removed_at === null && (
                <Button small look="danger" onClick={() => setRemoving(operator)}>
                  Remove
                </Button>
              ),
          },
        ]
      : []),
  ];
  const rows = (data ?? []).filter(({ removed_at }) => shown === 'all' || removed_at === null);

  return (
    <Page
      title="Operators"
      subtitle={`People who can sign in. Each uses their own key; there are no passwords.${isAdmin ? '' : ' Only admins can change them.'}`}
      actions={
        <>
          <Button onClick={() => setShown(shown === 'all' ? 'active' : 'all')} aria-pressed={shown === 'all'}>
            {shown === 'all' ? 'Hide removed' : 'Show removed'}
          </Button>
          {isAdmin && (
            <Button look="primary" icon={<UserPlus className="size-4" />} onClick={() => setAdding(true)}>
              Add operator
            </Button>
          )}
        </>
      }
    >
      <Panel flush>
        {error ? (
          <Failure error={error} retry={() => void refetch()} />
        ) : data === undefined ? (
          <SkeletonRows />
        ) : (
          <DataTable
            label="Operators"
            rows={rows}
            columns={columns}
            rowKey={(operator) => operator.operator_id}
            empty={<Empty title="No operators" />}
          />
        )}
      </Panel>
      {adding && <AddOperator onClose={() => setAdding(false)} />}
      <Confirm
        open={removing !== null}
        onOpenChange={() => setRemoving(null)}
        title={`Remove ${removing?.username ?? ''}?`}
        action="Remove operator"
        onConfirm={async () => {
          const removed = await deleteOperator(removing?.operator_id ?? '');
          notify(`Removed ${removing?.username}. ${endedText(removed)}`.trim());
        }}
      >
        This ends their sessions, streams, and terminals, and revokes their enrollment tokens and sign-in links. Their
        key and name cannot be used again. Their actions stay in the audit log.
      </Confirm>
    </Page>
  );
}
