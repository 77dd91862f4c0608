import { ApiError } from '@muster/protocol/client';
import { Link } from '@tanstack/react-router';
import { CircleAlert, Inbox } from 'lucide-react';
import { type ReactNode, useEffect, useRef } from 'react';
import { Button, buttonClasses } from './button.tsx';
import { classNames } from './class-names.ts';
import { cutText, visibleText } from './text.tsx';
import { Time } from './time.tsx';

/** Placeholders for content that is loading, empty, or failed to load. */

/** A placeholder shaped like the content. The console uses no spinners. */
export function Skeleton({ className }: { readonly className?: string }) {
  return (
    <span
      aria-hidden="true"
      data-skeleton=""
      className={classNames('block animate-pulse rounded bg-raised', className ?? 'h-4 w-full')}
    />
  );
}

export function SkeletonRows({ rows = 6, label = 'Loading' }: { readonly rows?: number; readonly label?: string }) {
  return (
    <div role="status" aria-label={label} className="divide-y">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all rows are the same
        <div key={row} className="flex h-10 items-center gap-4 px-4">
          <Skeleton className="h-3 w-1/4" />
          <Skeleton className="h-3 w-1/3" />
          <Skeleton className="h-3 w-1/6" />
        </div>
      ))}
    </div>
  );
}

/** Loading panels in two columns, as on the overview and on the pages of single objects. */
export function PanelSkeletons({ label = 'Loading' }: { readonly label?: string }) {
  const panel = (rows: number) => (
    <div className="rounded-lg border bg-surface">
      <div className="flex h-11 items-center border-b px-4">
        <Skeleton className="h-3 w-32" />
      </div>
      <div className="divide-y">
        {Array.from({ length: rows }, (_, row) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: all rows are the same
          <div key={row} className="flex h-10 items-center gap-6 px-4">
            <Skeleton className="h-3 w-1/4" />
            <Skeleton className="h-3 w-2/5" />
          </div>
        ))}
      </div>
    </div>
  );
  return (
    <div role="status" aria-label={label} className="grid items-start gap-4 xl:grid-cols-[3fr_2fr]">
      <div className="space-y-4">
        {panel(5)}
        {panel(4)}
      </div>
      {panel(6)}
    </div>
  );
}

/** Explains why a list is empty and offers a next step. */
export function Empty({
  title,
  icon,
  children,
  action,
}: {
  readonly title: string;
  readonly icon?: ReactNode;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <div className="flex flex-col items-center gap-1 px-6 py-12 text-center">
      <span aria-hidden="true" className="mb-2 text-muted">
        {icon ?? <Inbox className="size-7" strokeWidth={1.4} />}
      </span>
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="max-w-md text-muted text-sm">{children}</div>}
      {action !== undefined && <div className="mt-3">{action}</div>}
    </div>
  );
}

/**
 * A button above a list that loads newer entries. Without it, new entries would move the entries that the operator is
 * reading.
 */
export const Newer = ({ onShow }: { readonly onShow: () => void }) => (
  <div role="status" className="border-b bg-accent-soft px-3 py-1.5 text-center">
    <Button small look="quiet" onClick={onShow}>
      Show newer entries
    </Button>
  </div>
);

/** Returns an error's message with invisible characters replaced by their codes. */
export const messageOf = (error: unknown): string =>
  visibleText(cutText(error instanceof Error ? error.message : String(error), 4_000));

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The list page to which an item's page belongs. */
export interface ListTarget {
  readonly to: '/kinds' | '/operations' | '/out-of-sync' | '/runs' | '/terminals';
  readonly label: string;
}

/** Shows an error in place of content, with its API error code and request id. */
export function Failure({
  error,
  retry,
  list,
  item,
  title = item === undefined ? 'The data could not be loaded' : `This ${item} could not be loaded`,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
  /** Offered instead of a retry if the item does not exist. */
  readonly list?: ListTarget;
  /** The kind of item on an item's page, such as `run`. */
  readonly item?: string;
  readonly title?: string;
}) {
  const problem = error instanceof ApiError ? error.problem : null;
  const isMissing = list !== undefined && problem?.status === 404;
  return (
    <div role="alert" className="flex flex-col items-center gap-1 px-6 py-12 text-center">
      {isMissing ? (
        <Inbox aria-hidden="true" className="mb-2 size-7 text-muted" strokeWidth={1.4} />
      ) : (
        <CircleAlert aria-hidden="true" className="mb-2 size-7 text-bad" strokeWidth={1.4} />
      )}
      <p className="font-medium">{isMissing ? `${capitalized(item ?? 'page')} not found` : title}</p>
      <p className="max-w-lg break-words text-muted text-sm first-letter:uppercase">{messageOf(error)}</p>
      {problem !== null && !isMissing && (
        <p className="text-muted text-xs">
          <code className="font-mono">{problem.code}</code>
          {problem.instance !== '' && (
            <>
              {' '}
              · request <code className="font-mono">{problem.instance}</code>
            </>
          )}
        </p>
      )}
      {isMissing ? (
        <Link to={list.to} className={classNames(buttonClasses(), 'mt-3')}>
          {list.label}
        </Link>
      ) : (
        retry !== undefined && (
          <Button className="mt-3" onClick={retry}>
            Try again
          </Button>
        )
      )}
    </div>
  );
}

/** Shows when the stale plan was requested, if the error includes this time. */
export const PlannedAt = ({ error }: { readonly error: unknown }) =>
  error instanceof ApiError && error.problem.planned_at !== undefined ? (
    <p>
      The plan was requested <Time at={error.problem.planned_at} />.
    </p>
  ) : null;

/** Shows an error in a form or dialog, with the errors that the orchestrator reported. */
export function Problem({ error }: { readonly error: unknown }) {
  const shown = useRef<HTMLDivElement>(null);
  // Scrolls to the error, because the submit button may be far below it.
  useEffect(() => {
    if (error) shown.current?.scrollIntoView({ block: 'nearest' });
  }, [error]);
  if (error === null || error === undefined) return null;
  const named = error instanceof ApiError ? (error.problem.errors ?? []) : [];
  // A single error often has the same text as the error message.
  const faults = named.length === 1 && named[0]?.message === messageOf(error) ? [] : named;
  return (
    <div ref={shown} role="alert" className="rounded-md border border-bad/40 bg-bad-soft px-3 py-2 text-bad text-sm">
      <p className="break-words first-letter:uppercase">{messageOf(error)}</p>
      <PlannedAt error={error} />
      {faults.length > 0 && (
        <ul className="mt-1 list-disc pl-5">
          {faults.map(({ path, message }) => (
            <li key={`${path} ${message}`} className="break-words">
              {path !== '' && <code className="mr-1 font-mono text-xs">{visibleText(cutText(path, 300))}</code>}
              {visibleText(cutText(message, 1_000))}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
