import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';
import { Panel } from './panel.tsx';
import { Skeleton } from './states.tsx';

const gridClasses =
  'grid grid-cols-[repeat(auto-fill,minmax(8rem,1fr))] sm:grid-cols-[repeat(auto-fill,minmax(8.75rem,1fr))] 2xl:grid-cols-[repeat(auto-fill,minmax(11rem,1fr))] gap-x-6 gap-y-3';

/** A wide fact has the space of two, for a value that should stay on one line. */
type Fact = readonly [name: string, value: ReactNode, size?: 'wide'] | null;

/** A list of names and values. Skips values that are null. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className={gridClasses}>
      {facts
        .filter((fact) => fact !== null)
        .map(([name, value, size]) => (
          <div key={name} className={classNames('min-w-0', size === 'wide' && 'col-span-2')}>
            <dt className="text-muted text-xs">{name}</dt>
            {/* The zero-width space sets the baseline, so that values in another font are aligned too. */}
            <dd className="flex min-w-0 items-baseline text-sm before:content-['\200b']">
              <span className="flex min-w-0 flex-wrap items-baseline gap-x-1">{value}</span>
            </dd>
          </div>
        ))}
    </dl>
  );
}

/** The facts of an item that is loading, as in `Facts`. */
export const FactsSkeleton = ({ title, count = 6 }: { readonly title?: string; readonly count?: number }) => (
  <Panel title={title}>
    <div className={gridClasses}>
      {Array.from({ length: count }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a fixed number of facts
        <div key={at} className="flex h-9 flex-col justify-center gap-2">
          <Skeleton className="h-2.5 w-16" />
          <Skeleton className={classNames('h-3', at % 2 === 0 ? 'w-24' : 'w-20')} />
        </div>
      ))}
    </div>
  </Panel>
);

/** Names and values below one another, in the details of a table row. */
export const DetailFacts = ({ children }: { readonly children: ReactNode }) => (
  <dl className="grid grid-cols-[7rem_minmax(0,1fr)] gap-x-2 gap-y-1 text-sm">{children}</dl>
);

export const DetailFact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div className="contents">
    <dt className="text-muted">{name}</dt>
    <dd className="flex min-w-0 flex-wrap items-baseline gap-x-1">{children}</dd>
  </div>
);
