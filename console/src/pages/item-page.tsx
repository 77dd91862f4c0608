import type { ReactNode } from 'react';
import { FactsSkeleton } from '../parts/facts.tsx';
import { Page, type PageProps } from '../parts/page.tsx';
import { Loading, PanelSkeleton, TabsSkeleton } from '../parts/skeletons.tsx';
import { Failure, type ListTarget } from '../parts/states.tsx';
import { ListLink } from './links.tsx';

/** The pages of single items. Each has a link to the list of its kind, in all of its states. */

interface ItemKind {
  /** The list to which the items belong. */
  readonly to: ListTarget['to'];
  readonly label: string;
  readonly item: string;
  /** The label of the link to the list if an item does not exist. */
  readonly all: string;
  /** Why an item may not exist. By default, the page shows the error. */
  readonly missing?: string;
}

const kinds = {
  agent: {
    ...{ to: '/agents', label: 'Agents', item: 'agent', all: 'All agents' },
    missing: 'It may have been removed or renamed.',
  },
  assignment: {
    ...{ to: '/assignments', label: 'Assignments', item: 'assignment', all: 'All assignments' },
    missing: 'It may have been removed. Applied resources stay until the next apply on each agent.',
  },
  check: { to: '/out-of-sync', label: 'Out of sync', item: 'check', all: 'Out of sync' },
  kind: { to: '/kinds', label: 'Kinds', item: 'kind', all: 'All kinds' },
  module: {
    ...{ to: '/modules', label: 'Modules', item: 'module', all: 'All modules' },
    missing: 'It may have been removed. Its resources stay on machines until the next apply there.',
  },
  operation: { to: '/operations', label: 'Operations', item: 'operation', all: 'All operations' },
  run: { to: '/runs', label: 'Runs', item: 'run', all: 'All runs' },
  terminal: { to: '/terminals', label: 'Terminals', item: 'terminal session', all: 'All terminals' },
} as const satisfies Readonly<Record<string, ItemKind>>;

interface ItemProps {
  readonly of: keyof typeof kinds;
}

/** @param under links to the items to which this item belongs, below its list */
export function ItemPage({
  of,
  under = [],
  ...page
}: Omit<PageProps, 'crumbs'> & ItemProps & { readonly under?: readonly ReactNode[] }) {
  const { to, label } = kinds[of];
  return (
    <Page
      crumbs={[
        <ListLink key="list" to={to}>
          {label}
        </ListLink>,
        ...under,
      ]}
      {...page}
    />
  );
}

/** The state of the query of an item. */
interface ItemQuery<Item> {
  readonly data: Item | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Shows an item's page, or that the item is loading, does not exist, or cannot be loaded. */
export function LoadedItem<Item>({
  of,
  title,
  query: { data, error, refetch },
  skeleton,
  children,
}: ItemProps & {
  /** The title until the item is loaded. */
  readonly title: string;
  readonly query: ItemQuery<Item>;
  /** Placeholders with the shape of the page's content. */
  readonly skeleton: ReactNode;
  readonly children: (item: Item) => ReactNode;
}) {
  if (data !== undefined) return children(data);
  const { to, all, item, missing }: ItemKind = kinds[of];
  return (
    <ItemPage of={of} title={title}>
      {error === null ? (
        <Loading label={`Loading the ${item}`}>{skeleton}</Loading>
      ) : (
        <Failure error={error} retry={() => void refetch()} list={{ to, label: all }} {...{ item, missing }} />
      )}
    </ItemPage>
  );
}

/** The content of a page with facts and a list of resources. */
export const ReportSkeleton = ({ tabs }: { readonly tabs?: readonly string[] }) => (
  <>
    <FactsSkeleton />
    {tabs !== undefined && <TabsSkeleton labels={tabs} />}
    <PanelSkeleton rows={6} size="line" />
  </>
);

/** The content of a page with two columns of panels. */
export const ColumnsSkeleton = ({ tabs }: { readonly tabs: readonly string[] }) => (
  <div>
    <TabsSkeleton labels={tabs} />
    <div className="grid items-start gap-4 xl:grid-cols-[3fr_2fr]">
      <div className="space-y-4">
        <PanelSkeleton rows={4} />
        <PanelSkeleton rows={5} />
      </div>
      <PanelSkeleton rows={4} />
    </div>
  </div>
);
