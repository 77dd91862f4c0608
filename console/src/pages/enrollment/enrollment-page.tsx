import { Plus, Radar } from 'lucide-react';
import { useState } from 'react';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Button } from '../../parts/button.tsx';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty } from '../../parts/states.tsx';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { AddMachineDialog } from './add-machine-dialog.tsx';
import { DiscoverForm } from './discover-form.tsx';
import { TokensTable } from './tokens-table.tsx';

/** Enrolls machines by token or by network discovery. */
export function EnrollmentPage() {
  const isAdmin = useIsAdmin();
  const [edited, setEdited] = useUrlState('edit', '');
  const [discovering, setDiscovering] = useState(false);
  return (
    <Page
      title="Enrollment"
      description="Enroll a machine with a token and one command, or discover installed agents on the network."
      actions={
        <>
          <MoreActions
            actions={[
              {
                ...{ label: 'Discover…', icon: <Radar aria-hidden="true" className="size-4" /> },
                onSelect: () => setDiscovering(true),
              },
            ]}
          />
          {isAdmin && (
            <Button look="primary" icon={<Plus className="size-4" />} onClick={() => setEdited(newItem, true)}>
              New token
            </Button>
          )}
        </>
      }
    >
      <h2 className="pb-2 font-semibold text-sm">Tokens from the last 30 days</h2>
      {isAdmin ? (
        <TokensTable onNew={() => setEdited(newItem, true)} />
      ) : (
        <Panel flush>
          <Empty title="Only admins can see tokens">Ask an admin for the command to run on a new machine.</Empty>
        </Panel>
      )}
      {isAdmin && edited === newItem && <AddMachineDialog asks onClose={() => setEdited('')} />}
      {discovering && <DiscoverForm onClose={() => setDiscovering(false)} />}
    </Page>
  );
}
