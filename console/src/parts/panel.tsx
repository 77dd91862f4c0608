import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';

export function Panel({
  title,
  actions,
  children,
  flush = false,
  className,
}: {
  readonly title?: ReactNode | undefined;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Omits the padding, for tables and lists that have their own. */
  readonly flush?: boolean;
  readonly className?: string;
}) {
  const hasHeader = title !== undefined || actions !== undefined;
  return (
    <section className={classNames('min-w-0 rounded-lg border bg-surface', className)}>
      {hasHeader && (
        <header className="flex min-h-11 flex-wrap items-center gap-2 border-b px-4 py-1.5">
          <h2 className="min-w-0 flex-1 font-semibold text-sm">{title}</h2>
          {actions}
        </header>
      )}
      <div className={flush ? classNames('overflow-hidden rounded-b-[7px]', !hasHeader && 'rounded-t-[7px]') : 'p-4'}>
        {children}
      </div>
    </section>
  );
}
