import { lazy, Suspense } from 'react';
import { Skeleton } from '../../parts/states.tsx';

const DiffView = lazy(() => import('../../editor/diff-view.tsx'));

/** Two texts of a module, with what differs. */
export function TwoTexts(texts: {
  readonly before: string;
  readonly after: string;
  readonly beforeLabel: string;
  readonly afterLabel: string;
}) {
  return (
    <Suspense fallback={<Skeleton className="h-40 w-full" />}>
      <DiffView {...texts} />
    </Suspense>
  );
}
