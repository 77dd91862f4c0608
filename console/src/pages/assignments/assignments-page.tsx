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
import { ModuleLinks, RunLink } from '../links.tsx';
import { syncWords } from '../reconcile/sync-tones.ts';
import { useFleetSync } from '../reconcile/use-fleet-sync.ts';
import { countedStates } from './matched-states.ts';
import { matching } from './matching.ts';

interface Row {
  readonly assignment: Assignment;
  /** Undefined while the agents are loading. */
  readonly matched: readonly Agent[] | undefined;
  /** The number of matching agents in each sync state, the most urgent first; empty while loading. */
  readonly states: ReturnType<typeof countedStates>;
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
    width: 'minmax(6.5rem,2fr)',
    sort: ({ assignment }) => assignment.name,
    cell: ({ assignment: { name } }) => (
      <Link to="/assignments/$assignment" params={{ assignment: name }} className={nameLinkClasses}>
        <Line text={name} maxLength={64} />
      </Link>
    ),
  },
  {
    id: 'mode',
    header: 'Mode',
    width: '7rem',
    from: 'lg',
    phone: 'line',
    sort: ({ assignment }) => modeText(assignment),
    cell: ({ assignment }) => <Badge>{modeText(assignment)}</Badge>,
  },
  {
    id: 'modules',
    header: 'Modules',
    width: 'minmax(8rem,2fr)',
    from: 'md',
    phone: 'labeled',
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
    phone: 'labeled',
    align: 'right',
    sort: ({ matched }) => matched?.length ?? null,
    cell: ({ matched }) =>
      matched === undefined ? (
        <span className="text-muted">–</span>
      ) : matched.length === 0 ? (
        <span className="text-warn">none</span>
      ) : (
        <span className="tabular">{matched.length}</span>
      ),
  },
  {
    id: 'sync',
    header: 'Sync',
    width: '9.5rem',
    phone: 'line',
    cell: ({ states }) => <SyncSummary states={states} />,
  },
  {
    id: 'run',
    header: 'Last apply',
    width: 'minmax(11rem,1fr)',
    phone: 'labeled',
    sort: ({ lastApply }) => lastApply?.started_at ?? null,
    cell: ({ lastApply }) =>
      lastApply === undefined ? (
        <span className="text-muted">–</span>
      ) : lastApply === null ? (
        <Dot tone="faint">never</Dot>
      ) : (
        <span className="flex min-w-0 items-center gap-2">
          <RunLink id={lastApply.run_id}>
            <StatusDot status={lastApply.status} />
          </RunLink>
          <span className="text-muted text-xs">
            <Time at={lastApply.started_at} />
          </span>
        </span>
      ),
  },
];

const needsAction = ({ state }: Row['states'][number]): boolean => state !== 'in_sync' && state !== 'accepted';

/**
 * Summarizes the sync states of an assignment's agents: the most urgent state with its number of agents, or the number
 * of agents in all states that need an action. The tone is that of the most urgent agent.
 */
function SyncSummary({ states }: Pick<Row, 'states'>) {
  const [worst] = states;
  if (worst === undefined) return null;
  const text = ({ state, count }: typeof worst) => `${countText(count)} ${syncWords[state]}`;
  const urgent = states.filter(needsAction);
  const urgentCount = urgent.reduce((sum, { count }) => sum + count, 0);
  return (
    <span className="flex min-w-0" title={states.map(text).join(', ')}>
      <Dot tone={worst.tone}>
        {worst.state === 'in_sync'
          ? syncWords.in_sync
          : urgent.length > 1
            ? `${countText(urgentCount)} need action`
            : text(worst)}
      </Dot>
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
      const states = countedStates(matched ?? [], sync);
      const lastApply = byAssignment && (byAssignment.get(assignment.name) ?? null);
      return { assignment, matched, states, lastApply };
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
