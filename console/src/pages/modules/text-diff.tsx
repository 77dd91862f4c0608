import { lazy, Suspense } from 'react';
import { loadCode } from '../../api/live/load-code.ts';
import { Skeleton } from '../../parts/states.tsx';

const DiffView = lazy(() => loadCode(() => import('../../editor/diff-view.tsx')));

/** Shows a diff of two strings. Its code is loaded together with the editor's. */
export function TextDiff(texts: {
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
