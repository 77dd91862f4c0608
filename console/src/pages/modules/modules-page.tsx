import type { Assignment, Module } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useMemo } from 'react';
import { assignmentsQuery } from '../../api/assignments.ts';
import { modulesQuery } from '../../api/modules.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { ListPanel } from '../../parts/table/list-panel.tsx';
import { useSorting } from '../../parts/table/sorting.ts';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AssignmentLink, OperatorName } from '../links.tsx';

interface Row extends Module {
  readonly users: readonly Assignment[];
}

const columns: readonly Column<Row>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 'minmax(6.5rem,2fr)',
    sort: ({ name }) => name,
    cell: ({ name }) => (
      <Link
        to="/modules/$module"
        params={{ module: name }}
        className="inline-flex max-w-full rounded font-medium text-text hover:underline"
      >
        <Line text={name} maxLength={64} />
      </Link>
    ),
  },
  {
    id: 'users',
    header: 'Used by',
    width: 'minmax(6.5rem,3fr)',
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
    id: 'by',
    header: 'Saved by',
    width: 'minmax(6rem,1fr)',
    from: 'sm',
    cell: ({ uploaded_by }) => <OperatorName id={uploaded_by} />,
  },
  {
    id: 'at',
    header: 'Saved',
    width: '5.5rem',
    align: 'right',
    sort: ({ uploaded_at }) => uploaded_at,
    cell: ({ uploaded_at }) => (
      <span className="text-muted">
        <Time at={uploaded_at} />
      </span>
    ),
  },
];

export function ModulesPage() {
  const navigate = useNavigate();
  const [search, setSearch] = useUrlState<string>('q', '');
  const [sorting, setSorting] = useSorting({ column: 'name', descending: false });
  const modules = useQuery(modulesQuery);
  const assignments = useQuery(assignmentsQuery);
  const rows = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return (modules.data ?? [])
      .filter(({ name }) => name.toLowerCase().includes(wanted))
      .map((module) => ({
        ...module,
        users: assignments.data?.filter((assignment) => assignment.modules.includes(module.name)) ?? [],
      }));
  }, [modules.data, assignments.data, search]);
  const add = (
    <Link to="/modules/new" className={buttonClasses('primary')}>
      <Plus aria-hidden="true" className="size-4" />
      New module
    </Link>
  );
  return (
    <Page title="Modules" subtitle="Declarations of desired state, with their revisions." actions={add} fill>
      <ListPanel
        query={modules}
        rows={10}
        filters={
          <div className="w-64 max-sm:w-full">
            <Input
              label="Search modules"
              hideLabel
              placeholder="Search by name"
              data-search
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          </div>
        }
      >
        <DataTable
          label="Modules"
          rows={rows}
          columns={columns}
          rowKey={({ name }) => name}
          sorting={sorting}
          onSort={setSorting}
          onOpen={({ name }) => void navigate({ to: '/modules/$module', params: { module: name } })}
          fill
          empty={
            search === '' ? (
              <Empty title="No modules yet" action={add}>
                A module declares files, packages, services, and accounts of a machine. Start from an example and try it
                as a plan on one agent.
              </Empty>
            ) : (
              <Empty title="No matching modules" action={<Button onClick={() => setSearch('')}>Show all</Button>} />
            )
          }
        />
      </ListPanel>
    </Page>
  );
}
