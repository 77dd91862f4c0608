import type { ResourceResult } from '@muster/protocol';
import { useState } from 'react';
import { accept, withdrawAcceptance } from '../../api/drift.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm, Dialog } from '../../parts/dialog/dialog.tsx';
import { TextArea } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';

/** Asks why a deviation may stay, and says so of each that is named. */
export function AcceptDialog({
  driftIds,
  resources,
  onClose,
}: {
  readonly driftIds: readonly string[];
  /** As far as they are known: of hidden ones something more is said. */
  readonly resources?: readonly ResourceResult[];
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const hides = resources === undefined || resources.some(({ sensitive }) => sensitive);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      for (const id of driftIds) await accept(id, reason.trim());
      onClose();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={driftIds.length === 1 ? 'Accept this deviation' : `Accept ${driftIds.length} deviations`}
      description="It no longer counts as off, for as long as checks find the same or less of it. An apply still puts it right."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form="accept-drift" busy={busy} disabled={reason.trim() === ''}>
            Accept
          </Button>
        </>
      }
    >
      <form
        id="accept-drift"
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (reason.trim() !== '' && !busy) void submit();
        }}
      >
        <TextArea
          autoFocus
          label="Why it may stay"
          hint="Everybody sees it, and the audit log keeps it."
          maxLength={1024}
          required
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
        {driftIds.length > 1 && (
          <p className="text-muted text-xs">
            What deviates was not compared from one machine to the other: each accepts what was found on it. Look at
            some of them first.
          </p>
        )}
        {hides && (
          <p className="text-muted text-xs">
            Values of secrets are compared in their hidden form: a further change of a hidden value is not noticed.
          </p>
        )}
        <Problem error={error} />
      </form>
    </Dialog>
  );
}

export function WithdrawDialog({ driftId, onClose }: { readonly driftId: string; readonly onClose: () => void }) {
  return (
    <Confirm
      open
      onOpenChange={(open) => !open && onClose()}
      danger={false}
      title="Let it count as off again?"
      action="Withdraw the acceptance"
      onConfirm={() => withdrawAcceptance(driftId)}
    >
      The machine stays as it is. The deviation shows among what is off, until it is put right or accepted anew.
    </Confirm>
  );
}
