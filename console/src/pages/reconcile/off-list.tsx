import type { OffAgent } from '@muster/protocol/http';
import { useMemo, useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { acceptable, canRepair, groupOff } from './off.ts';
import { OffRow } from './off-row.tsx';
import type { ReconcileDialog } from './reconcile-dialog.ts';

const initialRows = 60;

/** Lists agents that are out of sync. Groups them if there are many. */
export function OffList({
  agents,
  chosen,
  onChoose,
  onDialog,
}: {
  readonly agents: readonly OffAgent[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (agents: readonly OffAgent[], isChosen: boolean) => void;
  readonly onDialog: (dialog: ReconcileDialog) => void;
}) {
  const [maxRows, setMaxRows] = useState(initialRows);
  const groups = useMemo(() => groupOff(agents), [agents]);
  const step = 5 * initialRows;
  return (
    <ul className="divide-y overflow-hidden rounded-lg border bg-surface" aria-label="Out of sync">
      {groups.slice(0, maxRows).map((group) => (
        <OffRow
          key={group.key}
          group={group}
          chosen={group.agents.every(({ node_id }) => chosen.has(node_id))}
          onChoose={(isChosen) => onChoose(group.agents, isChosen)}
          onRepair={() => onDialog({ kind: 'repair', agents: group.agents.filter(canRepair) })}
          onAccept={() => onDialog({ kind: 'accept', driftIds: group.agents.flatMap(acceptable) })}
          onWithdraw={(driftId) => onDialog({ kind: 'withdraw', driftId })}
        />
      ))}
      {groups.length > maxRows && (
        <li className="p-2 text-center">
          <Button small onClick={() => setMaxRows(maxRows + step)}>
            Show {Math.min(groups.length - maxRows, step)} more
          </Button>
        </li>
      )}
    </ul>
  );
}
