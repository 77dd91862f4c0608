import { useState } from 'react';
import { checkNow } from '../../api/drift.ts';
import { countedText } from '../../parts/count.ts';
import { type Each, EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';

/** Checks several agents for drift, and shows how many are checked. */
export function CheckDialog({
  agents,
  note = '',
  onClose,
}: {
  readonly agents: readonly Each[];
  /** A sentence about agents that are not checked. */
  readonly note?: string;
  readonly onClose: () => void;
}) {
  // The agents when the dialog opened. The list may change while they are checked.
  const [items] = useState(agents);
  const counted = countedText(items.length, 'agent');
  return (
    <EachDialog
      open
      onOpenChange={onClose}
      title={`Check ${counted} for drift`}
      description={`Compares each machine with its last apply. Changes nothing. ${note}`.trim()}
      action={`Check ${counted}`}
      done="checked"
      items={items}
      act={({ id }) => checkNow(id)}
      onDone={(ids) => notify(`${countedText(ids.length, 'agent')} checked`)}
    />
  );
}
