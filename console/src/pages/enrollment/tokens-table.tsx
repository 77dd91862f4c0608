import { useQuery } from '@tanstack/react-query';
import { Ticket } from 'lucide-react';
import { useState } from 'react';
import { type EnrolmentToken, enrolmentTokensQuery, revokeToken } from '../../api/enrollment.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Empty } from '../../parts/states.tsx';
import { ListTable } from '../../parts/table/list-table.tsx';
import { useNow } from '../../parts/time.tsx';
import { tokenColumns } from './token-columns.tsx';

export function TokensTable({ onNew }: { readonly onNew: () => void }) {
  const query = useQuery(enrolmentTokensQuery);
  const names = useOperatorNames();
  const now = useNow();
  const [revoking, setRevoking] = useState<EnrolmentToken | null>(null);
  return (
    <>
      <ListTable
        label="Enrollment tokens"
        query={query}
        rows={query.data}
        columns={tokenColumns(names, now, setRevoking)}
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
