import type { Secret } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { KeyRound, Plus, RotateCw } from 'lucide-react';
import { useState } from 'react';
import { useAgentNames } from '../../api/agents.ts';
import { removeSecretForGood, secretsQuery } from '../../api/secrets.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { Empty } from '../../parts/states.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { useNow } from '../../parts/time.tsx';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { RotateDialog } from './rotate-dialog.tsx';
import { secretColumns } from './secret-columns.tsx';
import { SecretDialog } from './secret-dialog.tsx';

const filters = [{ name: 'q', label: 'Search secrets', placeholder: 'Search secrets' }] as const;
const matches = ({ name, description }: Secret, { q }: FilterTexts) => containsText(q, name, description);

export function SecretsPage() {
  const isAdmin = useIsAdmin();
  const names = useAgentNames();
  const now = useNow();
  const query = useQuery(secretsQuery);
  /** Name of the secret that the dialog edits, stored in the URL. */
  const [edited, setEdited] = useUrlState('edit', '');
  const [removing, setRemoving] = useState<string | null>(null);
  const [rotating, setRotating] = useState(false);
  const secret = query.data?.find(({ name }) => name === edited) ?? null;
  const edit = (name: string) => setEdited(name, true);
  return (
    <ListPage
      title="Secrets"
      description="Values for modules. Stored encrypted and never shown again."
      actions={
        <>
          {isAdmin && (
            <MoreActions
              actions={[
                {
                  ...{ label: 'Rotate encryption key…', icon: <RotateCw aria-hidden="true" className="size-4" /> },
                  onSelect: () => setRotating(true),
                },
              ]}
            />
          )}
          <Button look="primary" icon={<Plus className="size-4" />} onClick={() => edit(newItem)}>
            New secret
          </Button>
        </>
      }
      query={query}
      rows={query.data}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={secretColumns({ names, now, onEdit: edit, onRemove: setRemoving })}
      rowKey={({ name }) => name}
      onOpen={({ name }) => edit(name)}
      noMatch="No matching secrets"
      empty={
        <Empty
          title="No secrets yet"
          icon={<KeyRound />}
          action={
            <Button icon={<Plus className="size-4" />} onClick={() => edit(newItem)}>
              New secret
            </Button>
          }
        >
          Store passwords, keys, and tokens here instead of in modules.
        </Empty>
      }
    >
      {(edited === newItem || secret !== null) && (
        <SecretDialog key={edited} secret={edited === newItem ? null : secret} onClose={() => setEdited('')} />
      )}
      <Confirm
        open={removing !== null}
        onOpenChange={(open) => !open && setRemoving(null)}
        title={`Remove the secret ${removing ?? ''}?`}
        action="Remove secret"
        onConfirm={async () => {
          if (removing !== null) await removeSecretForGood(removing);
        }}
      >
        Modules that use it will fail. Its values stay on machines.
      </Confirm>
      {rotating && <RotateDialog onClose={() => setRotating(false)} />}
    </ListPage>
  );
}
