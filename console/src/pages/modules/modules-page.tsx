import type { Assignment, Module } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Boxes, Plus } from 'lucide-react';
import { useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { assignmentsQuery, modulesOf } from '../../api/assignments.ts';
import { modulesQuery } from '../../api/modules/modules.ts';
import { Badge } from '../../parts/badge.tsx';
import { type ButtonLook, buttonClasses } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { matching } from '../assignments/matching.ts';
import { AssignmentLink, OperatorName } from '../links.tsx';

interface Row extends Module {
  readonly users: readonly Assignment[];
  /** The number of approved agents that the module is assigned to; null while they are loading. */
  readonly agents: number | null;
}

const columns: readonly Column<Row>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 'minmax(6.5rem,2fr)',
    sort: ({ name }) => name,
    cell: ({ name }) => (
      <Link to="/modules/$module" params={{ module: name }} className={nameLinkClasses}>
        <Line text={name} maxLength={64} />
      </Link>
    ),
  },
  {
    id: 'users',
    header: 'Used by',
    width: 'minmax(6.5rem,3fr)',
    phone: 'labeled',
    sort: ({ users }) => users.length,
    cell: ({ users }) =>
      users.length === 0 ? (
        <Badge>no assignment</Badge>
      ) : (
        <span className="flex min-w-0 items-center gap-2">
          {users.slice(0, 3).map(({ name }) => (
            <AssignmentLink key={name} name={name} />
          ))}
          {users.length > 3 && <span className="shrink-0 text-muted text-xs">and {users.length - 3} more</span>}
        </span>
      ),
  },
  {
    id: 'agents',
    header: 'Agents',
    width: '5rem',
    phone: 'top',
    align: 'right',
    sort: ({ agents }) => agents,
    cell: ({ agents }) =>
      agents === null ? (
        <span className="text-muted max-sm:hidden">–</span>
      ) : (
        <span className="tabular">
          {countText(agents)}
          <span className="text-muted sm:hidden"> {agents === 1 ? 'agent' : 'agents'}</span>
        </span>
      ),
  },
  {
    id: 'at',
    header: 'Saved',
    width: 'minmax(9rem,2fr)',
    phone: 'labeled',
    sort: ({ uploaded_at }) => uploaded_at,
    cell: ({ uploaded_at, uploaded_by }) => (
      <span className="flex min-w-0 gap-1">
        <span className="shrink-0">
          <Time at={uploaded_at} />
        </span>
        <span className="flex min-w-0 gap-1 text-muted">
          by <OperatorName id={uploaded_by} />
        </span>
      </span>
    ),
  },
];

const filters = [{ name: 'q', label: 'Search modules', placeholder: 'Search modules' }] as const;
const matches = ({ name }: Row, { q }: FilterTexts) => containsText(q, name);

export function ModulesPage() {
  const navigate = useNavigate();
  const query = useQuery(modulesQuery);
  const { data: assignments } = useQuery(assignmentsQuery);
  const { data: agents } = useQuery(agentsQuery);
  const rows = useMemo(() => {
    const assigned = assignments?.map((assignment) => ({
      ...{ assignment, modules: modulesOf(assignment) },
      members: agents && matching(assignment.selector, agents),
    }));
    return query.data?.map((module): Row => {
      const users = assigned?.filter(({ modules }) => modules.includes(module.name)) ?? [];
      const members = agents && assigned && new Set(users.flatMap((each) => each.members ?? []));
      return { ...module, users: users.map(({ assignment }) => assignment), agents: members?.size ?? null };
    });
  }, [query.data, assignments, agents]);
  const add = (look: ButtonLook) => (
    <Link to="/modules/new" className={buttonClasses(look)}>
      <Plus aria-hidden="true" className="size-4" />
      New module
    </Link>
  );
  return (
    <ListPage
      title="Modules"
      description="Modules declare the desired state of machines."
      actions={add('primary')}
      query={query}
      rows={rows}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={columns}
      rowKey={({ name }) => name}
      onOpen={({ name }) => void navigate({ to: '/modules/$module', params: { module: name } })}
      noMatch="No matching modules"
      empty={
        <Empty title="No modules yet" icon={<Boxes />} action={add('plain')}>
          A module declares files, packages, services, and accounts of machines. You can start from an example.
        </Empty>
      }
    />
  );
}
