import { useQuery } from '@tanstack/react-query';
import { Ticket } from 'lucide-react';
import { useRef, useState } from 'react';
import { type EnrolmentToken, enrolmentTokensQuery, revokeToken } from '../../api/enrollment.ts';
import { useOperatorNames } from '../../api/operators.ts';
import { Button } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Empty } from '../../parts/states.tsx';
import { useColumnWidth } from '../../parts/table/column-width.ts';
import { ListTable } from '../../parts/table/list-table.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { TagWidth } from '../../parts/tag-chip.tsx';
import { Time, useNow } from '../../parts/time.tsx';
import { shortIdOf, tokenColumns } from './token-columns.tsx';
import { tokenState } from './token-state.ts';

/** Pixels next to the tags in a row on a phone: the button of the menu, and the padding. */
const besideTags = 80;

export function TokensTable({ onNew }: { readonly onNew: () => void }) {
  const query = useQuery(enrolmentTokensQuery);
  const names = useOperatorNames();
  const now = useNow();
  const [revoking, setRevoking] = useState<EnrolmentToken | null>(null);
  const [chosen, setShowsUsed] = useState<boolean | null>(null);
  const table = useRef<HTMLDivElement>(null);
  const isPhone = useIsPhone();
  const tokens = query.data ?? [];
  const valid = tokens.filter((token) => tokenState(token, now) === 'valid');
  const others = tokens.length - valid.length;
  // Shows all tokens if none is valid, because the list would otherwise be empty.
  const showsUsed = chosen ?? valid.length === 0;
  const rows = showsUsed ? [...valid, ...tokens.filter((token) => !valid.includes(token))] : valid;
  const tagWidth = useColumnWidth(table, isPhone ? null : 'tags', rows.length > 0);
  return (
    <div ref={table}>
      <TagWidth value={isPhone ? tagWidth - besideTags : tagWidth}>
        <ListTable
          label="Enrollment tokens"
          query={query}
          rows={query.data && rows}
          columns={tokenColumns(names, now, setRevoking)}
          rowKey={({ id }) => id}
          empty={
            <Empty
              title={others > 0 ? 'No valid tokens' : 'No tokens yet'}
              icon={<Ticket />}
              action={<Button onClick={onNew}>New token</Button>}
            >
              A token lets machines join the fleet with one command.
            </Empty>
          }
        />
      </TagWidth>
      {others > 0 && (
        <div className="mt-3">
          <Button look="quiet" className="-ml-3" onClick={() => setShowsUsed(!showsUsed)}>
            {showsUsed ? 'Hide' : 'Show'} {countedText(others, 'used or expired token')}
          </Button>
        </div>
      )}
      <Confirm
        open={revoking !== null}
        onOpenChange={() => setRevoking(null)}
        title={`Revoke the token ${shortIdOf(revoking?.id ?? '')}?`}
        action="Revoke token"
        onConfirm={async () => {
          await revokeToken(revoking?.id ?? '');
          notify('Token revoked');
        }}
      >
        {revoking !== null && (
          <>
            It is for {revoking.name ?? 'any machine'}, and was created <Time at={revoking.created_at} /> by{' '}
            {names.get(revoking.created_by) ?? revoking.created_by}.{' '}
          </>
        )}
        No more agents can enroll with it. Agents that it enrolled stay.
      </Confirm>
    </div>
  );
}
