import { Page } from '../../parts/page.tsx';
import { Loading, PanelSkeleton } from '../../parts/skeletons.tsx';
import { Skeleton } from '../../parts/states.tsx';

/** The columns of the overview. */
export const overviewColumns = 'grid items-start gap-4 xl:grid-cols-[3fr_2fr]';

/** The overview while it is loading. */
export const OverviewSkeleton = () => (
  <Page title="Overview" subtitle={<Skeleton className="my-1 h-3 w-20" />}>
    <Loading label="Loading the overview" className={overviewColumns}>
      <div className="min-w-0 space-y-4">
        <PanelSkeleton title="Needs attention" rows={5} size="tall" />
        <PanelSkeleton title="Agents" rows={4} size="entry" />
      </div>
      <div className="min-w-0 space-y-4">
        <PanelSkeleton title="In progress" rows={2} size="entry" />
        <PanelSkeleton title="Recent events" rows={8} size="dense" />
      </div>
    </Loading>
  </Page>
);
