import type { Agent, Assignment, RunEntry } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus, Target } from 'lucide-react';
import { useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { assignmentsQuery, modulesOf } from '../../api/assignments.ts';
import { lastAppliesQuery } from '../../api/runs.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { type ButtonLook, buttonClasses } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { StatusDot } from '../../parts/work-status.tsx';
import { ModuleLinks } from '../links.tsx';
import { FindingLabel } from '../reconcile/sync-labels.tsx';
import { findingTones, findingWords } from '../reconcile/sync-tones.ts';
import { useFleetSync } from '../reconcile/use-fleet-sync.ts';
import { countedFindings, type FindingCount, urgencyOf } from './matched-states.ts';
import { matching } from './matching.ts';

interface Row {
  readonly assignment: Assignment;
  /** Undefined while the agents are loading. */
  readonly matched: readonly Agent[] | undefined;
  /** The number of matching agents with each finding, the most urgent first; empty while loading. */
  readonly counts: readonly FindingCount[];
  /** Null if the assignment was never applied; undefined while the applies are loading. */
  readonly lastApply: RunEntry | null | undefined;
}

/** Formats the mode. Only assignments that enforce can be restricted to windows, so `windows only` implies the mode. */
const modeText = ({ mode, window_only }: Assignment): string =>
  mode === 'enforce' && window_only ? 'windows only' : mode;

const columns: readonly Column<Row>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 'minmax(10rem,2.5fr)',
    sort: ({ assignment }) => assignment.name,
    cell: ({ assignment }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link to="/assignments/$assignment" params={{ assignment: assignment.name }} className={nameLinkClasses}>
          <Line text={assignment.name} maxLength={64} />
        </Link>
        {/* A narrow screen has no column for the mode, and needs no word for the usual one. */}
        {modeText(assignment) !== 'enforce' && (
          <span className="shrink-0 2xl:hidden">
            <Badge>{modeText(assignment)}</Badge>
          </span>
        )}
      </span>
    ),
  },
  {
    id: 'mode',
    header: 'Mode',
    width: '7rem',
    from: '2xl',
    sort: ({ assignment }) => modeText(assignment),
    cell: ({ assignment }) => <Badge>{modeText(assignment)}</Badge>,
  },
  {
    id: 'modules',
    header: 'Modules',
    width: 'minmax(8rem,2fr)',
    from: 'xl',
    cell: ({ assignment }) => {
      const modules = modulesOf(assignment);
      return (
        <span className="flex min-w-0 items-center gap-2 overflow-hidden">
          {assignment.modules.length === 0 && <span className="shrink-0 text-muted text-xs">values for</span>}
          <ModuleLinks modules={modules.slice(0, 3)} />
          {modules.length > 3 && <span className="shrink-0 text-muted text-xs">and {modules.length - 3} more</span>}
        </span>
      );
    },
  },
  {
    id: 'selector',
    header: 'Selector',
    width: 'minmax(8rem,3fr)',
    from: 'lg',
    phone: 'block',
    cell: ({ assignment: { selector } }) => (
      <span className="flex min-w-0 font-mono text-muted text-xs">
        <Line text={selector} />
      </span>
    ),
  },
  {
    id: 'matches',
    header: 'Agents',
    width: '4.5rem',
    phone: 'top',
    align: 'right',
    sort: ({ matched }) => matched?.length ?? null,
    cell: ({ matched }) =>
      matched === undefined ? (
        <span className="text-muted">–</span>
      ) : matched.length === 0 ? (
        <span className="text-warn">
          <span className="sm:hidden">matches </span>none
        </span>
      ) : (
        <span className="tabular">
          {countText(matched.length)}
          <span className="text-muted sm:hidden"> {matched.length === 1 ? 'agent' : 'agents'}</span>
        </span>
      ),
  },
  {
    id: 'sync',
    header: 'Sync',
    width: 'minmax(15rem,5.5fr)',
    phone: 'line',
    sort: ({ counts }) => urgencyOf(counts),
    cell: ({ counts }) => <SyncSummary counts={counts} />,
  },
  {
    id: 'run',
    header: 'Last apply',
    width: '10.5rem',
    phone: 'line-end',
    sort: ({ lastApply }) => lastApply?.started_at ?? null,
    cell: ({ lastApply }) =>
      lastApply === undefined ? (
        <span className="text-muted">–</span>
      ) : lastApply === null ? (
        <Dot tone="faint">
          never<span className="sm:hidden"> applied</span>
        </Dot>
      ) : (
        <span className="flex min-w-0 items-center gap-2">
          <Link to="/runs/$run" params={{ run: lastApply.run_id }} className="rounded hover:underline">
            <StatusDot status={lastApply.status} />
          </Link>
          <span className="text-muted text-xs">
            <Time at={lastApply.started_at} />
          </span>
        </span>
      ),
  },
];

/** An assignment's agents by finding, the most urgent first; only "in sync" if all agents are. */
function SyncSummary({ counts }: Pick<Row, 'counts'>) {
  const text = ({ finding, count }: FindingCount) => `${countText(count)} ${findingWords[finding]}`;
  if (counts.length === 1 && counts[0]?.finding === 'in_sync') return <FindingLabel finding="in_sync" />;
  const shown = counts.filter(({ finding }) => finding !== 'in_sync');
  return (
    <span className="truncate" title={counts.map(text).join(', ')}>
      {shown.map((each) => (
        <span key={each.finding} className="mr-3 inline-flex last:mr-0">
          <Dot tone={findingTones[each.finding]}>{text(each)}</Dot>
        </span>
      ))}
    </span>
  );
}

const filters = [{ name: 'q', label: 'Search assignments', placeholder: 'Search assignments' }] as const;
const matches = ({ assignment }: Row, { q }: FilterTexts) =>
  containsText(q, assignment.name, ...modulesOf(assignment), assignment.selector, assignment.description);

export function AssignmentsPage() {
  const navigate = useNavigate();
  const query = useQuery(assignmentsQuery);
  const { data: agents } = useQuery(agentsQuery);
  const { data: applies } = useQuery(lastAppliesQuery);
  const sync = useFleetSync();
  const rows = useMemo(() => {
    const byAssignment = applies && new Map(applies.map((apply) => [apply.assignment, apply]));
    return query.data?.map((assignment) => {
      const matched = agents === undefined ? undefined : (matching(assignment.selector, agents) ?? []);
      const counts = countedFindings(matched ?? [], sync);
      const lastApply = byAssignment && (byAssignment.get(assignment.name) ?? null);
      return { assignment, matched, counts, lastApply };
    });
  }, [query.data, agents, applies, sync]);
  const add = (look: ButtonLook) => (
    <Link to="/assignments/new" className={buttonClasses(look)}>
      <Plus aria-hidden="true" className="size-4" />
      New assignment
    </Link>
  );
  return (
    <ListPage
      title="Assignments"
      description="Assign modules to agents by selector."
      actions={add('primary')}
      query={query}
      rows={rows}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={columns}
      rowKey={({ assignment: { name } }) => name}
      onOpen={({ assignment: { name } }) =>
        void navigate({ to: '/assignments/$assignment', params: { assignment: name } })
      }
      noMatch="No matching assignments"
      empty={
        <Empty title="No assignments yet" icon={<Target />} action={add('plain')}>
          An assignment adds modules to the desired state of all agents that match a selector.
        </Empty>
      }
    />
  );
}
