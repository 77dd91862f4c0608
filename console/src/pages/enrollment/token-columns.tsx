import type { EnrolmentToken } from '../../api/enrollment.ts';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Tags } from '../../parts/tag-chip.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { tokenState } from './token-state.ts';

const tones: Readonly<Record<ReturnType<typeof tokenState>, Tone>> = {
  valid: 'good',
  'used up': 'neutral',
  expired: 'neutral',
  revoked: 'neutral',
};

/** The end of an ID, which is enough for the CLI to find the token. */
export const shortIdOf = (id: string): string => `…${id.slice(-8)}`;

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
      width: 'minmax(7rem,3fr)',
      cell: ({ name }) =>
        name === null ? (
          <span className="truncate text-muted">any machine</span>
        ) : (
          <span className="flex min-w-0 font-medium">
            <Line text={name} />
          </span>
        ),
    },
    {
      id: 'tags',
      header: 'Tags',
      width: 'minmax(9.5rem,4fr)',
      phone: 'block',
      cell: ({ tags }) => <Tags tags={tags} />,
    },
    {
      id: 'state',
      header: 'Status',
      width: '5.5rem',
      cell: (token) => <Dot tone={tones[tokenState(token, now)]}>{tokenState(token, now)}</Dot>,
    },
    {
      id: 'id',
      header: 'ID',
      width: '6rem',
      from: 'xl',
      cell: ({ id }) => (
        <code className="font-mono text-muted text-xs" title={id}>
          {shortIdOf(id)}
        </code>
      ),
    },
    {
      id: 'uses',
      header: 'Uses left',
      width: '5rem',
      align: 'right',
      from: 'md',
      phone: 'top',
      cell: ({ uses_left }) => <UsesLeft count={uses_left} />,
    },
    {
      id: 'approve',
      header: 'Approval',
      width: '6.5rem',
      from: 'md',
      phone: 'line',
      cell: ({ approve }) => (approve ? 'automatic' : 'manual'),
    },
    {
      id: 'expires',
      header: 'Expires',
      width: '6rem',
      from: 'sm',
      phone: 'line',
      // Once a token can no longer be used, its expiry does not matter.
      cell: (token) => <Time at={tokenState(token, now) === 'valid' ? token.expires_at : null} />,
    },
    {
      id: 'made',
      header: 'Created',
      width: 'minmax(9rem,2fr)',
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
      width: '5rem',
      phone: 'end',
      align: 'right',
      cell: (token) =>
        tokenState(token, now) === 'valid' && (
          <RowActions on={`the token ${shortIdOf(token.id)} for ${token.name ?? 'any machine'}`}>
            <MenuItem danger onSelect={() => onRevoke(token)}>
              Revoke…
            </MenuItem>
          </RowActions>
        ),
    },
  ];
}

const UsesLeft = ({ count }: { readonly count: number }) => (
  <span className="tabular">
    {count}
    <span className="text-muted sm:hidden"> left</span>
  </span>
);
