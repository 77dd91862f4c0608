import type { Secret } from '@muster/protocol/http';
import { Badge } from '../../parts/badge.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';
import { expiryOf } from './secret-form.ts';

/**
 * @param names the agents' names by node id
 * @param now Unix milliseconds
 */
export function secretColumns({
  names,
  now,
  onEdit,
  onRemove,
}: {
  readonly names: ReadonlyMap<string, string>;
  readonly now: number;
  readonly onEdit: (name: string) => void;
  readonly onRemove: (name: string) => void;
}): readonly Column<Secret>[] {
  return [
    {
      id: 'name',
      header: 'Name',
      width: 'minmax(8rem,2fr)',
      sort: ({ name }) => name,
      cell: ({ name }) => (
        <button type="button" className={nameLinkClasses} onClick={() => onEdit(name)}>
          <Line text={name} />
        </button>
      ),
    },
    {
      id: 'description',
      header: 'Description',
      width: '2.5fr',
      from: 'lg',
      cell: ({ description }) =>
        description === null || description === '' ? (
          <span className="text-muted">–</span>
        ) : (
          <Line text={description} />
        ),
    },
    {
      id: 'restriction',
      header: 'Allowed agents',
      width: '2fr',
      from: 'md',
      phone: 'line',
      cell: ({ restriction }) => <Restriction {...{ restriction, names }} />,
    },
    {
      id: 'expires',
      header: 'Expires',
      width: '6.5rem',
      phone: 'top',
      sort: ({ expires_at }) => (expires_at === null ? null : Date.parse(expires_at)),
      cell: ({ expires_at }) => <Expiry at={expires_at} now={now} />,
    },
    {
      id: 'by',
      header: 'Updated by',
      width: '1fr',
      from: 'lg',
      cell: ({ updated_by }) => <OperatorName id={updated_by} />,
    },
    {
      id: 'updated',
      header: 'Updated',
      width: '6rem',
      from: 'sm',
      phone: 'line-end',
      align: 'right',
      sort: ({ updated_at }) => Date.parse(updated_at),
      cell: ({ updated_at }) => (
        <span className="text-muted">
          <Time at={updated_at} />
        </span>
      ),
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '5.5rem',
      phone: 'end',
      align: 'right',
      cell: ({ name }) => (
        <RowActions on={name}>
          <MenuItem onSelect={() => onEdit(name)}>Edit…</MenuItem>
          <MenuItem danger onSelect={() => onRemove(name)}>
            Remove…
          </MenuItem>
        </RowActions>
      ),
    },
  ];
}

function Expiry({ at, now }: { readonly at: string | null; readonly now: number }) {
  const expiry = expiryOf(at, now);
  // A phone has no header that says what the time is, and needs no word for the usual case.
  if (expiry === 'none') return <span className="text-muted max-sm:hidden">never</span>;
  if (expiry === 'later')
    return (
      <span>
        <span className="text-muted sm:hidden">expires </span>
        <Time at={at} />
      </span>
    );
  return (
    <Badge tone={expiry === 'expired' || expiry === 'days' ? 'bad' : 'warn'}>
      <span>
        {expiry === 'expired' ? 'expired ' : <span className="sm:hidden">expires </span>}
        <Time at={at} />
      </span>
    </Badge>
  );
}

/** The agents that may use a secret: selected agents by name, and agents that a selector matches. */
function Restriction({
  restriction,
  names,
}: {
  readonly restriction: Secret['restriction'];
  readonly names: ReadonlyMap<string, string>;
}) {
  const { node_ids = null, tags = null } = restriction ?? {};
  const agents = node_ids === null ? null : agentsText(node_ids, names);
  if (tags === '') return <Line text="no agent" />;
  if (tags === null) return <Line text={agents ?? 'any approved agent'} />;
  return (
    <span className="flex min-w-0 items-baseline gap-1">
      {agents !== null && <Line text={`${agents} and`} />}
      <code className="flex min-w-0 font-mono text-muted text-xs">
        <Line text={tags} />
      </code>
    </span>
  );
}

function agentsText(ids: readonly string[], names: ReadonlyMap<string, string>): string {
  if (ids.length === 0) return 'no agent';
  return ids.length <= 3 ? ids.map((id) => names.get(id) ?? id.slice(0, 8)).join(', ') : `${ids.length} agents`;
}
