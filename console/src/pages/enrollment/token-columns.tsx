import type { EnrolmentToken } from '../../api/enrollment.ts';
import { Badge, Dot, type Tone } from '../../parts/badge.tsx';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { tokenState } from './token-state.ts';

const tones: Readonly<Record<ReturnType<typeof tokenState>, Tone>> = {
  valid: 'good',
  'used up': 'neutral',
  expired: 'neutral',
  revoked: 'neutral',
};

/**
 * @param names operator names by id
 * @param now Unix milliseconds
 */
export function tokenColumns(
  names: ReadonlyMap<string, string>,
  now: number,
  onRevoke: (token: EnrolmentToken) => void,
): readonly Column<EnrolmentToken>[] {
  return [
    {
      id: 'name',
      header: 'For',
      width: '2fr',
      cell: ({ name, tags }) => (
        <span className="flex min-w-0 items-center gap-1.5">
          {name === null ? (
            <span className="text-muted">any machine</span>
          ) : (
            <span className="flex min-w-0 font-medium">
              <Line text={name} />
            </span>
          )}
          <span className="flex min-w-0 flex-wrap gap-1.5">
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
      header: 'Status',
      width: '6rem',
      cell: (token) => <Dot tone={tones[tokenState(token, now)]}>{tokenState(token, now)}</Dot>,
    },
    {
      id: 'uses',
      header: 'Uses left',
      width: '6rem',
      align: 'right',
      from: 'sm',
      phone: 'labeled',
      cell: ({ uses_left }) => uses_left,
    },
    {
      id: 'approve',
      header: 'Approval',
      width: '8rem',
      from: 'md',
      cell: ({ approve }) => (approve ? 'automatic' : 'manual'),
    },
    {
      id: 'expires',
      header: 'Expires',
      width: '7rem',
      from: 'sm',
      phone: 'labeled',
      // Once a token can no longer be used, its expiry does not matter.
      cell: (token) => <Time at={tokenState(token, now) === 'valid' ? token.expires_at : null} />,
    },
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
      width: '5.5rem',
      phone: 'end',
      align: 'right',
      cell: (token) =>
        tokenState(token, now) === 'valid' && (
          <RowActions on={`the token for ${token.name ?? 'any machine'}`}>
            <MenuItem danger onSelect={() => onRevoke(token)}>
              Revoke…
            </MenuItem>
          </RowActions>
        ),
    },
  ];
}
