import type { Operator } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Eye, EyeOff, UserPlus, Users } from 'lucide-react';
import { useState } from 'react';
import { deleteOperator, endedText, operatorsQuery, useOperatorNames } from '../../api/operators.ts';
import { useIsAdmin, usePerson } from '../../api/sign-in/use-session.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Empty } from '../../parts/states.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { AddOperator } from './add-operator.tsx';
import { operatorColumns } from './operator-columns.tsx';

export function OperatorsPage() {
  const query = useQuery(operatorsQuery);
  const isAdmin = useIsAdmin();
  const { operator_id: me } = usePerson();
  const names = useOperatorNames();
  const [shown, setShown] = useUrlState<'active' | 'all'>('show', 'active');
  const [edited, setEdited] = useUrlState('edit', '');
  const [removing, setRemoving] = useState<Operator | null>(null);
  const ShownIcon = shown === 'all' ? EyeOff : Eye;
  return (
    <ListPage
      title="Operators"
      description={`People who can sign in. Each uses their own key; there are no passwords.${isAdmin ? '' : ' Only admins can change them.'}`}
      actions={
        <>
          <MoreActions
            actions={[
              {
                label: shown === 'all' ? 'Hide removed' : 'Show removed',
                icon: <ShownIcon aria-hidden="true" className="size-4" />,
                onSelect: () => setShown(shown === 'all' ? 'active' : 'all'),
              },
            ]}
          />
          {isAdmin && (
            <Button look="primary" icon={<UserPlus className="size-4" />} onClick={() => setEdited(newItem, true)}>
              Add operator
            </Button>
          )}
        </>
      }
      query={query}
      rows={query.data?.filter(({ removed_at }) => shown === 'all' || removed_at === null)}
      sortedBy="username"
      columns={operatorColumns(names, me, isAdmin ? setRemoving : undefined)}
      rowKey={({ operator_id }) => operator_id}
      empty={<Empty title="No operators" icon={<Users />} />}
    >
      {isAdmin && edited === newItem && <AddOperator onClose={() => setEdited('')} />}
      <Confirm
        open={removing !== null}
        onOpenChange={() => setRemoving(null)}
        title={`Remove the operator ${removing?.username ?? ''}?`}
        action="Remove operator"
        onConfirm={async () => {
          const removed = await deleteOperator(removing?.operator_id ?? '');
          notify(`Removed ${removing?.username}. ${endedText(removed)}`.trim());
        }}
      >
        This ends their sessions, streams, and terminals, and revokes their enrollment tokens and sign-in links. Their
        key and name cannot be used again. Their actions stay in the audit log.
      </Confirm>
    </ListPage>
  );
}
