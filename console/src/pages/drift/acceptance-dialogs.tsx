import type { ResourceResult } from '@muster/protocol';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { accept, withdrawAcceptance } from '../../api/drift.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { TextArea } from '../../parts/form/field.tsx';

export function AcceptDialog({
  driftIds,
  resources,
  onClose,
}: {
  readonly driftIds: readonly string[];
  /**
   * Drifted resources, or undefined if not loaded. The dialog shows a warning if any is sensitive, or if they are not
   * loaded.
   */
  readonly resources?: readonly ResourceResult[];
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const save = useMutation({
    mutationFn: async () => {
      for (const id of driftIds) await accept(id, reason.trim());
    },
    onSuccess: () => onClose(),
  });
  const hides = resources === undefined || resources.some(({ sensitive }) => sensitive);
  return (
    <FormDialog
      title={driftIds.length === 1 ? 'Accept this drift' : `Accept ${driftIds.length} drift records`}
      description="Accepted drift no longer counts as out of sync while checks find the same differences or fewer. An apply still repairs it."
      action="Accept"
      request={save}
      invalid={reason.trim() === ''}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <TextArea
        autoFocus
        label="Reason"
        hint="Visible to all operators and recorded in the audit log."
        maxLength={1024}
        required
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      {driftIds.length > 1 && (
        <p className="text-muted text-xs">
          The drift of different machines was not compared. Each machine accepts its own. Review some of them first.
        </p>
      )}
      {hides && (
        <p className="text-muted text-xs">
          Secret values are compared in masked form, so later changes of a masked value are not detected.
        </p>
      )}
    </FormDialog>
  );
}

export function WithdrawDialog({ driftId, onClose }: { readonly driftId: string; readonly onClose: () => void }) {
  return (
    <Confirm
      open
      onOpenChange={(open) => !open && onClose()}
      danger={false}
      title="Withdraw the acceptance?"
      action="Withdraw"
      onConfirm={() => withdrawAcceptance(driftId)}
    >
      The drift counts as out of sync again until it is repaired or accepted. The machine is not changed.
    </Confirm>
  );
}
