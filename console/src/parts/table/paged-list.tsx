import type { ReactNode } from 'react';
import { Button } from '../button.tsx';
import { Panel } from '../panel.tsx';
import { Failure, Newer, type RowSize, SkeletonRows } from '../states.tsx';

/** A query's state, without its data. The optional fields are set for a paged query. */
export interface PagedQuery {
  readonly error: unknown;
  readonly refetch: () => unknown;
  readonly hasNextPage?: boolean;
  readonly isFetchingNextPage?: boolean;
  readonly fetchNextPage?: () => unknown;
}

/** A list with its loading, error, and empty states. If a later request fails, the loaded items stay. */
export function PagedList<Item>({
  label,
  title,
  header,
  query,
  items,
  children,
  empty,
  onShowNewer,
  rowSize = 'row',
}: {
  readonly label: string;
  /** A heading within the panel. */
  readonly title?: string;
  /** Column headers above the items. They are hidden from screen readers, because each item names its values. */
  readonly header?: ReactNode;
  readonly query: PagedQuery;
  /** Undefined while loading. */
  readonly items: readonly Item[] | undefined;
  /** Returns an item as an `<li>` element. */
  readonly children: (item: Item) => ReactNode;
  readonly empty: ReactNode;
  /** Loads newer items. Undefined if there are none. */
  readonly onShowNewer?: (() => void) | undefined;
  /** Height of the placeholders for items. */
  readonly rowSize?: RowSize;
}) {
  return (
    <Panel flush {...(title !== undefined && { title })}>
      {onShowNewer !== undefined && <Newer onShow={onShowNewer} />}
      {items !== undefined ? (
        items.length === 0 ? (
          empty
        ) : (
          <>
            {header !== undefined && (
              <div aria-hidden="true" className="border-b">
                {header}
              </div>
            )}
            <ul aria-label={label} className="divide-y">
              {items.map(children)}
            </ul>
          </>
        )
      ) : query.error ? (
        <Failure title={`${label} could not be loaded`} error={query.error} retry={() => void query.refetch()} />
      ) : (
        <>
          {header !== undefined && (
            <div aria-hidden="true" className="border-b">
              {header}
            </div>
          )}
          <SkeletonRows rows={10} size={rowSize} />
        </>
      )}
      {query.hasNextPage && (
        <div className="border-t p-3 text-center">
          <Button busy={query.isFetchingNextPage === true} onClick={() => void query.fetchNextPage?.()}>
            Show older
          </Button>
        </div>
      )}
    </Panel>
  );
}
