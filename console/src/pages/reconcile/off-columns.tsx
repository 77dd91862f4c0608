import type { OffAgent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { findingsOf } from '../../../../client/src/reason-words.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { countedText } from '../../parts/count.ts';
import { MenuItem, RowActions } from '../../parts/dialog/menu.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { RowToggle } from '../../parts/table/row-toggle.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { IssueBlock, IssueLine } from './issue-line.tsx';
import { issuesOf } from './issues.ts';
import { acceptable, canCheck, canRepair, type OffGroup } from './off.ts';
import type { OffDialog } from './off-dialog.ts';
import { FindingLabel } from './sync-labels.tsx';

/** A row of the list: an agent, or a group of agents with the same issues. */
export interface OffEntry extends OffGroup {
  /** Position in the list, the most urgent first. */
  readonly rank: number;
}

/** Returns the agent that represents the group. */
export const firstOf = ({ agents }: OffGroup): OffAgent => agents[0] as OffAgent;

/** Returns the agent's name, or the number of agents in the group. */
export const labelOf = (group: OffGroup): string =>
  group.agents.length === 1
    ? (firstOf(group).name ?? firstOf(group).node_id)
    : countedText(group.agents.length, 'agent');

/** Returns since when the first agent has been out of sync, in Unix seconds; null if unknown. */
function sinceOf(group: OffGroup): number | null {
  const { drift, failed_operation } = firstOf(group);
  return drift.find(({ accepted }) => accepted === null)?.since ?? failed_operation?.finished_at ?? null;
}

export function offColumns({
  open,
  onToggle,
  isPhone,
  onDialog,
}: {
  /** Keys of the open rows. */
  readonly open: ReadonlySet<string>;
  readonly onToggle: (key: string) => void;
  readonly isPhone: boolean;
  readonly onDialog: (dialog: OffDialog) => void;
}): readonly Column<OffEntry>[] {
  return [
    {
      id: 'agent',
      header: 'Agent',
      width: 'minmax(8rem,2fr)',
      sort: labelOf,
      cell: (group) => (
        <span className="min-w-0">
          <RowToggle
            name={labelOf(group)}
            isOpen={open.has(group.key)}
            onToggle={() => onToggle(group.key)}
            link={
              group.agents.length > 1 ? undefined : (
                <Link to="/agents/$agent" params={{ agent: firstOf(group).node_id }} className={nameLinkClasses}>
                  <Line text={labelOf(group)} maxLength={64} />
                </Link>
              )
            }
          />
          {!isPhone && <LastSeen group={group} />}
        </span>
      ),
    },
    {
      id: 'reason',
      header: 'Reason',
      width: '7.5rem',
      phone: 'top',
      sort: ({ rank }) => rank,
      cell: (group) => (
        <span className="flex min-h-6 items-center max-sm:min-h-0">
          <Reason agent={firstOf(group)} />
        </span>
      ),
    },
    {
      id: 'issues',
      header: 'Issues',
      width: 'minmax(12rem,5fr)',
      phone: 'block',
      cell: (group) =>
        isPhone ? (
          <FirstIssue agent={firstOf(group)} isOpen={open.has(group.key)} />
        ) : (
          <Issues agent={firstOf(group)} />
        ),
    },
    {
      id: 'since',
      header: 'Since',
      width: '5.5rem',
      align: 'right',
      from: 'lg',
      sort: sinceOf,
      cell: (group) => {
        const since = sinceOf(group);
        return <span className="flex min-h-6 items-center text-muted">{since !== null && <Time at={since} />}</span>;
      },
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '8rem',
      phone: 'end',
      align: 'right',
      cell: (group) => <Actions {...{ group, isPhone, onDialog }} />,
    },
  ];
}

function Reason({ agent }: { readonly agent: OffAgent }) {
  const [worst] = findingsOf(agent);
  return worst === undefined ? <FindingLabel finding="accepted" /> : <FindingLabel finding={worst} />;
}

function LastSeen({ group }: { readonly group: OffGroup }) {
  const { connected, last_seen_at } = firstOf(group);
  if (group.agents.length > 1 || connected) return null;
  return (
    <span className="block pl-4 text-muted text-xs">
      <Dot tone="neutral">
        offline, last seen <Time at={last_seen_at} />
      </Dot>
    </span>
  );
}

/** Maximum number of resources that a row names on a wide screen. */
const maxIssues = 3;

function Issues({ agent }: { readonly agent: OffAgent }) {
  const { issues, more } = issuesOf(agent);
  const hidden = more + Math.max(0, issues.length - maxIssues);
  return (
    <ul aria-label="Issues" className="min-w-0">
      {issues.slice(0, maxIssues).map((issue) => (
        <li key={issue.text} className="min-w-0 py-0.5 leading-5">
          <IssueLine issue={issue} />
        </li>
      ))}
      {hidden > 0 && <li className="text-muted text-xs">and {hidden} more</li>}
    </ul>
  );
}

/** The first issue, and the number of others. */
function FirstIssue({ agent, isOpen }: { readonly agent: OffAgent; readonly isOpen: boolean }) {
  const { issues, more } = issuesOf(agent);
  const [first, ...others] = issues;
  return first === undefined ? null : <IssueBlock issue={first} isOpen={isOpen} more={more + others.length} />;
}

/** A button for the usual next step, and a menu with the others. A phone has no room for the button. */
function Actions({
  group,
  isPhone,
  onDialog,
}: {
  readonly group: OffGroup;
  readonly isPhone: boolean;
  readonly onDialog: (dialog: OffDialog) => void;
}) {
  const label = labelOf(group);
  const driftIds = group.agents.flatMap(acceptable);
  const repaired = group.agents.filter(canRepair);
  const repair = () => onDialog({ kind: 'repair', agents: repaired });
  return (
    <span className="flex items-center justify-end gap-1 sm:-my-0.5">
      {!isPhone && repaired.length > 0 && (
        <Button small onClick={repair}>
          Apply…<span className="sr-only"> {label}</span>
        </Button>
      )}
      <RowActions on={label}>
        {isPhone && repaired.length > 0 && <MenuItem onSelect={repair}>Apply…</MenuItem>}
        {driftIds.length > 0 && <MenuItem onSelect={() => onDialog({ kind: 'accept', driftIds })}>Accept…</MenuItem>}
        <MenuItem
          disabled={!group.agents.some(canCheck)}
          onSelect={() => onDialog({ kind: 'check', agents: group.agents })}
        >
          Check now…
        </MenuItem>
      </RowActions>
    </span>
  );
}
