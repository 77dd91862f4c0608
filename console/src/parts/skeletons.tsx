import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';
import { Panel } from './panel.tsx';
import { type RowSize, Skeleton, SkeletonRows } from './states.tsx';

/** Placeholders with the shapes of the parts of a page. */

/** A group of placeholders, announced once. */
export const Loading = ({
  label,
  className = 'space-y-4',
  children,
}: {
  readonly label: string;
  readonly className?: string;
  readonly children: ReactNode;
}) => (
  <div role="status" aria-label={label} className={className}>
    {children}
  </div>
);

/** A panel that is loading: its title, if that is known, and rows. */
export const PanelSkeleton = ({
  title = <Skeleton className="h-3 w-32" />,
  rows = 4,
  size = 'row',
}: {
  readonly title?: ReactNode;
  readonly rows?: number;
  readonly size?: RowSize;
}) => (
  <Panel flush title={title}>
    <SkeletonRows rows={rows} size={size} label={null} />
  </Panel>
);

/** The names of tabs whose content is loading, as in `Tabs`. The first one is selected. */
export const TabsSkeleton = ({ labels }: { readonly labels: readonly string[] }) => (
  <div aria-hidden="true" className="mb-4 flex gap-1 overflow-hidden border-b max-sm:mb-2">
    {labels.map((label, at) => (
      <span
        key={label}
        className={classNames(
          '-mb-px flex h-9 shrink-0 items-center border-b-2 px-3 text-sm max-sm:h-11',
          at === 0 ? 'border-accent font-medium' : 'border-transparent text-muted',
        )}
      >
        {label}
      </span>
    ))}
  </div>
);
