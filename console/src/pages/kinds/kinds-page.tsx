import type { Kind } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Shapes } from 'lucide-react';
import { kindsQuery } from '../../api/modules/kinds.ts';
import { Badge } from '../../parts/badge.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { CodeText } from './code-text.tsx';
import { platformOptions, platformsText } from './platforms.ts';

const columns: readonly Column<Kind>[] = [
  {
    id: 'name',
    header: 'Name',
    width: 'minmax(11rem,1fr)',
    // Kinds without a provider come last.
    sort: ({ name, executable }) => `${executable ? 0 : 1} ${name}`,
    cell: ({ name, executable }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link to="/kinds/$kind" params={{ kind: name }} className={nameLinkClasses}>
          <Line text={name} maxLength={64} />
        </Link>
        {!executable && <Badge>planned</Badge>}
      </span>
    ),
  },
  {
    id: 'platforms',
    header: 'Systems',
    width: 'minmax(7rem,1fr)',
    phone: 'top',
    cell: ({ platforms }) => <span className="truncate text-muted">{platformsText(platforms)}</span>,
  },
  {
    id: 'summary',
    header: 'Summary',
    width: 'minmax(12rem,4fr)',
    from: 'sm',
    phone: 'line',
    cell: ({ summary }) => (
      <span className="min-w-0 sm:truncate" title={summary}>
        <CodeText text={summary} />
      </span>
    ),
  },
];

const filters = [
  { name: 'q', label: 'Search kinds', placeholder: 'Search kinds' },
  { name: 'for', label: 'System', any: 'Any system', options: platformOptions },
] as const;
const matches = ({ name, summary, platforms }: Kind, { q, for: platform }: FilterTexts) =>
  containsText(q, name, summary) && (platform === '' || platforms.some((each) => each === platform));

export function KindsPage() {
  const navigate = useNavigate();
  const query = useQuery(kindsQuery);
  return (
    <ListPage
      title="Kinds"
      description="The resource kinds that modules may use, and their fields."
      query={query}
      rows={query.data}
      filters={filters}
      matches={matches}
      sortedBy="name"
      columns={columns}
      rowKey={({ name }) => name}
      onOpen={({ name }) => void navigate({ to: '/kinds/$kind', params: { kind: name } })}
      noMatch="No matching kinds"
      empty={<Empty title="No kinds" icon={<Shapes />} />}
    />
  );
}
