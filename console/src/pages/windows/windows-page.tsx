import { useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { windowsQuery } from '../../api/windows.ts';
import { Button } from '../../parts/button.tsx';
import { Page } from '../../parts/page.tsx';
import { useNow } from '../../parts/time.tsx';
import { newItem, useUrlState } from '../../parts/url-state.ts';
import { MonthPanel } from './month-panel.tsx';
import { type WindowAction, WindowActionDialog } from './window-action-dialog.tsx';
import { WindowList } from './window-list.tsx';

export function WindowsPage() {
  const query = useQuery(windowsQuery);
  const { data } = query;
  const isAdmin = useIsAdmin();
  const now = useNow();
  /**
   * The action in the dialog. Does not include edits, whose window is in the URL, so that a reload keeps the form open.
   */
  const [ending, setEnding] = useState<WindowAction | null>(null);
  const [edited, setEdited] = useUrlState('edit', '');
  const [from, setFrom] = useState<Date | null>(null);
  const editedWindow = data?.find(({ id }) => id === edited) ?? null;
  const isEditing = isAdmin && (edited === newItem || editedWindow !== null);
  const action = isEditing ? { kind: 'edit' as const, window: editedWindow, from } : ending;
  const setAction = (next: WindowAction) => {
    if (next.kind !== 'edit') return setEnding(next);
    setFrom(next.from);
    return setEdited(next.window?.id ?? newItem, true);
  };
  const close = () => {
    setEnding(null);
    setEdited('');
  };
  return (
    <Page
      title="Maintenance windows"
      description={`An open window mutes notifications about its agents and allows assignments that are restricted to windows.${isAdmin ? '' : ' Only admins can create them.'}`}
      actions={
        isAdmin && (
          <Button
            look="primary"
            icon={<Plus className="size-4" />}
            onClick={() => setAction({ kind: 'edit', window: null, from: null })}
          >
            New window
          </Button>
        )
      }
    >
      <div className="space-y-4">
        <WindowList query={query} windows={data} now={now} onAction={setAction} />
        {!query.isError && <MonthPanel windows={data} now={now} onAction={setAction} />}
      </div>
      {action !== null && <WindowActionDialog action={action} now={now} onClose={close} />}
    </Page>
  );
}
