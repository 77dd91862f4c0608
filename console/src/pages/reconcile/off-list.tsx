import type { OffAgent } from '@muster/protocol/http';
import { useMemo, useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { acceptable, canRepair, groupOff } from './off.ts';
import type { OffDialog } from './off-dialog.ts';
import { OffRow, offColumns } from './off-row.tsx';

const initialRows = 60;

/** Lists out-of-sync agents. Groups them if there are many. */
export function OffList({
  agents,
  chosen,
  onChoose,
  onDialog,
}: {
  readonly agents: readonly OffAgent[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (agents: readonly OffAgent[], isChosen: boolean) => void;
  readonly onDialog: (dialog: OffDialog) => void;
}) {
  const [maxRows, setMaxRows] = useState(initialRows);
  const groups = useMemo(() => groupOff(agents), [agents]);
  const step = 5 * initialRows;
  return (
    <>
      <div className={classNames(offColumns, 'h-9 items-center border-b max-sm:h-11 font-medium text-muted text-xs')}>
        <label className="-m-3.5 p-3.5">
          <input
            type="checkbox"
            aria-label={`Select all ${agents.length}`}
            className="block size-4 accent-[var(--accent)]"
            checked={agents.every(({ node_id }) => chosen.has(node_id))}
            onChange={(event) => onChoose(agents, event.target.checked)}
          />
        </label>
        <span className="pl-5.5">Agent</span>
        <span className="max-md:hidden">Reason</span>
        <span className="max-md:hidden">Issues</span>
        <span className="max-md:hidden">Since</span>
      </div>
      <ul className="divide-y" aria-label="Out of sync">
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
    </>
  );
}
