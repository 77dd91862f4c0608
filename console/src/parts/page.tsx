import { type ReactNode, useEffect } from 'react';
import { classNames } from './class-names.ts';
import { lineText } from './text.tsx';

/**
 * A page's layout: title, subtitle, actions, and content. With `fill`, the content takes the remaining height, for
 * tables and terminals that scroll themselves.
 */
export function Page({
  title,
  name,
  crumbs = [],
  subtitle,
  actions,
  fill = false,
  children,
}: {
  readonly title: ReactNode;
  /** The browser tab's title. By default `title`, if that is text. */
  readonly name?: string;
  /** Links to the pages above this one, the topmost first. */
  readonly crumbs?: readonly ReactNode[];
  readonly subtitle?: ReactNode;
  readonly actions?: ReactNode;
  readonly fill?: boolean;
  readonly children: ReactNode;
}) {
  const tab = lineText(name ?? (typeof title === 'string' ? title : ''), 80);
  useEffect(() => {
    document.title = tab === '' ? 'Muster' : `${tab} · Muster`;
  }, [tab]);
  return (
    // All pages have the same width, so that the title stays in place on navigation.
    <div className={classNames('w-full max-w-[120rem]', fill && 'flex h-full min-h-0 flex-col')}>
      <header className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 pt-4 pb-3 sm:px-6">
        <div className="min-w-0 flex-1 basis-60">
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
      <div className={fill ? 'min-h-0 flex-1 px-4 pb-4 sm:px-6' : 'px-4 pb-10 sm:px-6'}>{children}</div>
    </div>
  );
}
