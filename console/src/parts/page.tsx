import { type ReactNode, useEffect } from 'react';
import { classNames } from './class-names.ts';
import { Skeleton, SkeletonRows } from './states.tsx';
import { lineText } from './text.tsx';

/** A page whose code is loading: its title, a toolbar, and a list. */
export const PageSkeleton = ({ title }: { readonly title?: string | undefined }) => (
  <div role="status" aria-label="Loading the page" className="w-full max-w-[120rem] px-4 pt-4 max-sm:pt-3 sm:px-6">
    {/* The heading of the page replaces this text, so it is no heading itself. */}
    {title === undefined ? (
      <Skeleton className="my-1 h-5 w-40 max-w-full" />
    ) : (
      <div className="truncate font-semibold text-lg leading-7 tracking-tight">{title}</div>
    )}
    <Skeleton className="my-1 h-3 w-80 max-w-full max-sm:hidden" />
    <Skeleton className="mt-4 mb-3 h-8 w-72 max-sm:h-11 max-sm:w-full" />
    <div className="overflow-hidden rounded-lg border bg-surface">
      <SkeletonRows rows={10} size="line" label={null} />
    </div>
  </div>
);

export interface PageProps {
  readonly title: ReactNode;
  /** The browser tab's title. By default `title`, if that is text. */
  readonly name?: string;
  /** Links to the pages above this one, the topmost first. */
  readonly crumbs?: readonly ReactNode[];
  /** Explains the page. Hidden on a phone, so that the content starts higher. */
  readonly description?: ReactNode;
  /** Facts about the page's object. */
  readonly subtitle?: ReactNode;
  readonly actions?: ReactNode;
  /** Callouts about the page's object, above all other content. */
  readonly banner?: ReactNode;
  readonly fill?: boolean;
  readonly children: ReactNode;
}

/**
 * A page's layout: title, description or subtitle, actions, callouts, and content. With `fill`, the content takes the remaining
 * height, for tables and terminals that scroll themselves.
 */
export function Page({
  title,
  name,
  crumbs = [],
  description,
  subtitle,
  actions,
  banner,
  fill = false,
  children,
}: PageProps) {
  const tab = lineText(name ?? (typeof title === 'string' ? title : ''), 80);
  useEffect(() => {
    document.title = tab === '' ? 'Muster' : `${tab} · Muster`;
  }, [tab]);
  return (
    // All pages have the same width, so that the title stays in place on navigation.
    <div className={classNames('w-full max-w-[120rem]', fill && 'flex h-full min-h-0 flex-col')}>
      <header className="flex flex-wrap items-start gap-x-4 max-sm:gap-x-2 gap-y-2 px-4 pt-4 pb-3 max-sm:items-center max-sm:pt-3 max-sm:pb-2.5 sm:px-6">
        <div className="min-w-0 flex-1 basis-60 max-sm:basis-auto">
          {crumbs.length > 0 && (
            <nav aria-label="Breadcrumb" className="flex min-w-0 items-center gap-1.5 text-muted text-xs">
              {crumbs.map((crumb, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
                <span key={index} className="inline-flex min-w-0 items-center gap-1.5">
                  {index > 0 && <span aria-hidden="true">/</span>}
                  {crumb}
                </span>
              ))}
            </nav>
          )}
          <h1 className="wraps-names truncate font-semibold text-lg leading-7 tracking-tight">{title}</h1>
          {description !== undefined && <div className="text-muted text-sm max-sm:hidden">{description}</div>}
          {subtitle !== undefined && <div className="text-muted text-sm">{subtitle}</div>}
        </div>
        {actions !== undefined && (
          // The buttons are 4 px higher than the line of the title. Links above the title are 16 px high.
          <div
            className={classNames('flex flex-wrap items-center gap-2', crumbs.length > 0 ? 'sm:mt-3.5' : 'sm:-mt-0.5')}
          >
            {actions}
          </div>
        )}
      </header>
      {banner !== undefined && <div className="space-y-3 px-4 pb-4 empty:hidden sm:px-6">{banner}</div>}
      <div className={fill ? 'min-h-0 flex-1 px-4 pb-4 sm:px-6' : 'px-4 pb-10 sm:px-6'}>{children}</div>
    </div>
  );
}
