import type { DriftRecord } from '@muster/protocol/http';
import { useMutation, useQueries } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAgentName } from '../../api/agents.ts';
import { accept, driftRecordQuery, withdrawAcceptance } from '../../api/drift.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { TextArea } from '../../parts/form/field.tsx';
import { anchorText } from '../../parts/resource/anchor.ts';
import { ResultList } from '../../parts/resource/resource-results.tsx';
import { Skeleton } from '../../parts/states.tsx';
import { AgentLink, agentWords } from '../links.tsx';

/** Maximum number of drift records whose differences the dialog shows. */
const maxShown = 10;

/** Accepts drift with a reason. Shows the agents, the drifted resources, and their differences. */
export function AcceptDialog({
  driftIds,
  onClose,
}: {
  readonly driftIds: readonly string[];
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const queries = useQueries({ queries: driftIds.slice(0, maxShown).map((id) => driftRecordQuery(id)) });
  const records = queries.flatMap(({ data }) => data ?? []);
  const isLoading = queries.some(({ isPending }) => isPending);
  const [first] = records;
  const name = useAgentName(first?.node_id ?? '');
  const save = useMutation({
    mutationFn: async () => {
      for (const id of driftIds) await accept(id, reason.trim());
    },
    onSuccess: () => onClose(),
  });
  // Records that are not loaded may contain sensitive resources.
  const hides =
    records.length < driftIds.length || records.some(({ resources }) => resources.some(({ sensitive }) => sensitive));
  const isOne = driftIds.length === 1;
  return (
    <FormDialog
      wide
      title={
        isOne
          ? `Accept the drift${first === undefined ? '' : ` on ${agentWords(name)}`}`
          : `Accept ${driftIds.length} drift records`
      }
      description="Accepted drift no longer counts as out of sync while checks find the same differences or fewer. An apply still repairs it."
      action="Accept"
      request={save}
      invalid={reason.trim() === ''}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {isLoading && <Skeleton className="h-24 w-full rounded-md" />}
      {records.map((record) => (
        <AcceptedDrift key={record.drift_id} record={record} isNamed={!isOne} />
      ))}
      {driftIds.length > maxShown && (
        <p className="text-muted text-sm">And {driftIds.length - maxShown} more drift records.</p>
      )}
      <TextArea
        autoFocus
        label="Reason"
        hint="Visible to all operators and recorded in the audit log."
        maxLength={1024}
        required
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      {!isOne && (
        <p className="text-muted text-xs">
          The drift of different machines was not compared. Each machine’s own drift is accepted. Review some of them
          first.
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

/** The drifted resources of a record. The differences of a single record are expanded. */
function AcceptedDrift({
  record: { drift_id, node_id, resources },
  isNamed,
}: {
  readonly record: DriftRecord;
  readonly isNamed: boolean;
}) {
  const navigate = useNavigate();
  return (
    <section aria-label="Drifted resources" className="space-y-1.5 text-sm">
      {isNamed && <AgentLink id={node_id} />}
      <ResultList
        folded={isNamed}
        results={resources}
        resultKind="drift"
        onAnchor={(anchor) =>
          void navigate({ to: '/drift/$record', params: { record: drift_id }, hash: anchorText(anchor) })
        }
      />
    </section>
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
