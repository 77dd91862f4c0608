import type { Window } from '@muster/protocol/http';
import { changeWindow, deleteWindow } from '../../api/windows.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Text } from '../../parts/text.tsx';
import { momentNow } from '../../parts/time.tsx';
import type { WindowFormTarget } from './use-window-form.ts';
import { WindowForm } from './window-form.tsx';

/** An action on a maintenance window, shown in a dialog. To create a window, `edit` has a null window. */
export type WindowAction =
  | ({ readonly kind: 'edit' } & WindowFormTarget)
  | { readonly kind: 'end' | 'remove'; readonly window: Window };

export function WindowActionDialog({
  action,
  now,
  onClose,
}: {
  readonly action: WindowAction;
  readonly now: number;
  readonly onClose: () => void;
}) {
  if (action.kind === 'edit') return <WindowForm target={action} now={now} onClose={onClose} />;
  const { id, reason } = action.window;
  return action.kind === 'end' ? (
    <Confirm
      open
      onOpenChange={onClose}
      title="End this window now?"
      action="End window"
      danger={false}
      onConfirm={async () => {
        await changeWindow(id, { ends_at: Math.floor(momentNow() / 1000) });
        notify('Maintenance window ended');
      }}
    >
      Notifications about its agents resume. Muted notifications are not sent later.
    </Confirm>
  ) : (
    <Confirm
      open
      onOpenChange={onClose}
      title="Remove this window?"
      action="Remove window"
      onConfirm={async () => {
        await deleteWindow(id);
        notify('Maintenance window removed');
      }}
    >
      <Text text={reason} />. If it is open, it ends now.
    </Confirm>
  );
}
