import type { Secret } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { KeyRound, Pencil, Plus, RotateCw, Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useAgentNames } from '../../api/agents.ts';
import { removeSecretForGood, rotateKey, secretsQuery } from '../../api/secrets.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button, IconButton } from '../../parts/button.tsx';
import { Confirm, Dialog } from '../../parts/dialog/dialog.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, Problem, SkeletonRows } from '../../parts/states.tsx';
import { type Column, DataTable, type Sorting } from '../../parts/table/data-table.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { Time, useNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { OperatorName } from '../links.tsx';
import { SecretDialog } from './secret-dialog.tsx';
import { expiryOf } from './secret-form.ts';

export function SecretsPage() {
  const isAdmin = useIsAdmin();
  const names = useAgentNames();
  const now = useNow();
  const query = useQuery(secretsQuery);
  const [search, setSearch] = useUrlState('q', '');
  const [sort, setSort] = useUrlState<string>('sort', 'name');
  /** `new!`, or the name of a secret: the dialog is part of the address. */
  const [edited, setEdited] = useUrlState('edit', '');
  const [removing, setRemoving] = useState<string | null>(null);
  const [rotating, setRotating] = useState(false);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return (query.data ?? []).filter(({ name, description }) =>
      `${name} ${description ?? ''}`.toLowerCase().includes(wanted),
    );
  }, [query.data, search]);
  const open = query.data?.find(({ name }) => name === edited) ?? null;
  const sorting: Sorting = { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') };

  const columns: Column<Secret>[] = [
    {
      id: 'name',
      header: 'Name',
      width: 'minmax(9rem,2fr)',
      sort: ({ name }) => name,
      cell: ({ name }) => (
        <button
          type="button"
          className="min-w-0 truncate rounded font-medium font-mono text-xs hover:underline"
          onClick={() => setEdited(name, true)}
        >
          <Line text={name} />
        </button>
      ),
    },
    {
      id: 'description',
      header: 'Description',
      width: '2.5fr',
      from: 'md',
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
      from: 'lg',
      cell: ({ restriction }) => <Line text={restrictionText(restriction, names)} />,
    },
    {
      id: 'expires',
      header: 'Expires',
      width: '7.5rem',
      sort: ({ expires_at }) => (expires_at === null ? null : Date.parse(expires_at)),
      cell: ({ expires_at }) => <Expiry at={expires_at} now={now} />,
    },
    {
      id: 'updated',
      header: 'Updated',
      width: '6rem',
      from: 'sm',
      sort: ({ updated_at }) => Date.parse(updated_at),
      cell: ({ updated_at }) => <Time at={updated_at} />,
    },
    {
      id: 'by',
      header: 'Updated by',
      width: '1fr',
      from: 'lg',
      cell: ({ updated_by }) => <OperatorName id={updated_by} />,
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '5.5rem',
      align: 'right',
      cell: ({ name }) => (
        <span className="flex">
          <IconButton
            small
            label={`Change ${name}`}
            icon={<Pencil className="size-3.5" />}
            onClick={() => setEdited(name, true)}
          />
          <IconButton
            small
            label={`Remove ${name}`}
            icon={<Trash2 className="size-3.5" />}
            onClick={() => setRemoving(name)}
          />
        </span>
      ),
    },
  ];

  return (
    <Page
      fill
      title="Secrets"
      subtitle="Values for modules. Stored encrypted and never shown again."
      actions={
        <>
          {(query.data?.length ?? 0) > 0 && (
            <div className="w-44">
              <Input
                label="Search"
                hideLabel
                type="search"
                data-search=""
                placeholder="Name or description"
                value={search}
                onChange={(event) => setSearch(event.target.value)}
              />
            </div>
          )}
          {isAdmin && (
            <Button icon={<RotateCw className="size-3.5" />} onClick={() => setRotating(true)}>
              Rotate key
            </Button>
          )}
          <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setEdited('new!', true)}>
            New secret
          </Button>
        </>
      }
    >
      <Panel flush className="overflow-hidden">
        {query.isPending ? (
          <SkeletonRows />
        ) : query.data === undefined ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : (
          <DataTable
            label="Secrets"
            rows={rows}
            columns={columns}
            rowKey={({ name }) => name}
            sorting={sorting}
            onSort={({ column, descending }) => setSort(`${descending ? '-' : ''}${column}`)}
            onOpen={({ name }) => setEdited(name, true)}
            empty={
              search === '' ? (
                <Empty
                  title="No secrets yet"
                  icon={<KeyRound className="size-7" strokeWidth={1.4} />}
                  action={
                    <Button look="primary" onClick={() => setEdited('new!', true)}>
                      New secret
                    </Button>
                  }
                >
                  Store passwords, keys, and tokens here instead of in modules.
                </Empty>
              ) : (
                <Empty title="No matching secrets">Try another search.</Empty>
              )
            }
          />
        )}
      </Panel>
      {(edited === 'new!' || open !== null) && (
        <SecretDialog key={edited} secret={edited === 'new!' ? null : open} onClose={() => setEdited('')} />
      )}
      <Confirm
        open={removing !== null}
        onOpenChange={(next) => !next && setRemoving(null)}
        title={`Remove ${removing ?? ''}?`}
        action="Remove secret"
        onConfirm={async () => {
          if (removing !== null) await removeSecretForGood(removing);
        }}
      >
        Modules that use it will fail. Its values stay on machines.
      </Confirm>
      {rotating && <RotateDialog onClose={() => setRotating(false)} />}
    </Page>
  );
}

function Expiry({ at, now }: { readonly at: string | null; readonly now: number }) {
  const expiry = expiryOf(at, now);
  if (expiry === 'none') return <span className="text-muted">never</span>;
  if (expiry === 'later') return <Time at={at} />;
  return (
    <Badge tone={expiry === 'expired' ? 'bad' : 'warn'}>
      {expiry === 'expired' ? 'expired ' : ''}
      <Time at={at} />
    </Badge>
  );
}

function restrictionText(restriction: Secret['restriction'], names: ReadonlyMap<string, string>): string {
  const parts: string[] = [];
  if (restriction?.node_ids != null)
    parts.push(
      restriction.node_ids.length === 0
        ? 'no agent'
        : restriction.node_ids.length <= 3
          ? restriction.node_ids.map((id) => names.get(id) ?? id.slice(0, 8)).join(', ')
          : `${restriction.node_ids.length} agents`,
    );
  if (restriction?.tags != null) parts.push(restriction.tags === '' ? 'no agent' : restriction.tags);
  return parts.length === 0 ? 'any approved agent' : parts.join(' and ');
}

function RotateDialog({ onClose }: { readonly onClose: () => void }) {
  const rotate = useMutation({ mutationFn: rotateKey });
  const { data } = rotate;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Rotate the encryption key"
      footer={
        data === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" busy={rotate.isPending} onClick={() => rotate.mutate()}>
              Rotate key
            </Button>
          </>
        ) : (
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        )
      }
    >
      <div className="space-y-3 text-sm">
        <Problem error={rotate.error} />
        {data === undefined ? (
          <p>
            This re-encrypts every value with a new key. Secrets stay available meanwhile. If the rotation is
            interrupted, nothing is lost; start it again.
          </p>
        ) : (
          <>
            <p role="status">
              {data.reencrypted} {data.reencrypted === 1 ? 'value' : 'values'} re-encrypted with the key{' '}
              <code className="font-mono text-xs">{visibleText(data.key_id)}</code>.
            </p>
            {data.retired.length > 0 && (
              <p>
                No longer needed {data.retired.length === 1 ? 'key' : 'keys'}:{' '}
                <code className="font-mono text-xs">{visibleText(data.retired.join(', '))}</code>
              </p>
            )}
            {data.unreadable.length > 0 && (
              <p className="text-bad">
                Not re-encrypted because their key is missing: {visibleText(data.unreadable.join(', '))}. Restore the
                key, or set new values.
              </p>
            )}
          </>
        )}
      </div>
    </Dialog>
  );
}
