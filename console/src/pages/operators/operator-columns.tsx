import type { Operator } from '@muster/protocol/http';
import { Badge } from '../../parts/badge.tsx';
import { Id } from '../../parts/copy.tsx';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';

/**
 * @param names operator names by id
 * @param me id of the signed-in operator
 * @param onRemove undefined if the signed-in operator may not remove operators
 */
export function operatorColumns(
  names: ReadonlyMap<string, string>,
  me: string,
  onRemove: ((operator: Operator) => void) | undefined,
): readonly Column<Operator>[] {
  return [
    {
      id: 'username',
      header: 'Name',
      width: '1fr',
      sort: (operator) => operator.username,
      cell: (operator) => (
        <span className="flex min-w-0 items-center gap-2">
          <span className="flex min-w-0 font-medium">
            <Line text={operator.username} />
          </span>
          {operator.operator_id === me && <Badge>you</Badge>}
          {operator.removed_at !== null && <Badge>removed</Badge>}
        </span>
      ),
    },
    {
      id: 'role',
      header: 'Role',
      width: '6rem',
      phone: 'top',
      cell: ({ role }) => <Badge>{role}</Badge>,
    },
    {
      id: 'added',
      header: 'Added',
      width: 'minmax(8rem,1fr)',
      from: 'sm',
      phone: 'labeled',
      sort: (operator) => operator.added_at,
      cell: ({ added_at, added_by }) => (
        <span className="truncate">
          <Time at={added_at} />{' '}
          <span className="text-muted">
            {added_by === 'bootstrap' ? (
              'from configuration'
            ) : (
              <>
                by <Line text={names.get(added_by) ?? added_by} />
              </>
            )}
          </span>
        </span>
      ),
    },
    { id: 'id', header: 'ID', width: '9rem', from: 'md', cell: ({ operator_id }) => <Id id={operator_id} /> },
    ...(onRemove !== undefined
      ? [
          {
            id: 'actions',
            header: 'Actions',
            width: '6rem',
            phone: 'end' as const,
            align: 'right' as const,
            cell: (operator: Operator) =>
              operator.removed_at === null && (
                <RowActions on={operator.username}>
                  <MenuItem danger onSelect={() => onRemove(operator)}>
                    Remove…
                  </MenuItem>
                </RowActions>
              ),
          },
        ]
      : []),
  ];
}
