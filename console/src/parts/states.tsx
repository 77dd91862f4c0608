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

/** Heights of rows: `line` as in a table, `tall` as in a list with buttons, `entry` for two lines. */
const rowHeights = { dense: 'h-8.5', line: 'h-9', row: 'h-10', tall: 'h-11', entry: 'h-15' } as const;
export type RowSize = keyof typeof rowHeights;

/** Widths of placeholders, so that rows do not look the same. */
const rowWidths = ['w-2/5', 'w-1/2', 'w-1/3', 'w-3/5', 'w-2/5'] as const;

/** Rows that are loading: a dot, a text, and a time, as in lists. */
export function SkeletonRows({
  rows = 6,
  size = 'row',
  label = 'Loading',
}: {
  readonly rows?: number;
  readonly size?: RowSize;
  /** Null if the rows are a part of a placeholder that announces itself. */
  readonly label?: string | null;
}) {
  return (
    <div {...(label === null ? {} : { role: 'status', 'aria-label': label })} className="divide-y">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a fixed number of rows
        <div key={row} className={classNames('flex items-center gap-3 px-4', rowHeights[size])}>
          <Skeleton className="size-2 shrink-0 rounded-full" />
          <span className="flex-1 space-y-2.5">
            <Skeleton className={classNames('h-3', rowWidths[row % rowWidths.length])} />
            {size === 'entry' && <Skeleton className="h-2.5 w-20" />}
          </span>
          <Skeleton className="h-2.5 w-12 shrink-0" />
        </div>
      ))}
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
      <span
        aria-hidden="true"
        className="mb-2 flex size-12 items-center justify-center rounded-full bg-raised text-muted [&>svg]:size-6 [&>svg]:stroke-[1.5]"
      >
        {icon ?? <Inbox />}
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

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The page to which an error leads back: the list of an item's page, or the overview. */
export interface ListTarget {
  readonly to:
    | '/'
    | '/agents'
    | '/assignments'
    | '/kinds'
    | '/modules'
    | '/operations'
    | '/out-of-sync'
    | '/runs'
    | '/terminals';
  readonly label: string;
}

/** Shows an error in place of content, with its API error code and request id. */
export function Failure({
  error,
  retry,
  list,
  item,
  missing,
  title = item === undefined ? 'The data could not be loaded' : `This ${item} could not be loaded`,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
  /** Offered next to a retry, or instead of it if the item does not exist. */
  readonly list?: ListTarget;
  /** The kind of item on an item's page, such as `run`. */
  readonly item?: string;
  /** Why the item may not exist; the error's message by default. */
  readonly missing?: string | undefined;
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
      <p className="max-w-lg break-words text-muted text-sm first-letter:uppercase">
        {(isMissing ? missing : undefined) ?? messageOf(error)}
      </p>
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
      <div className="mt-3 flex flex-wrap justify-center gap-2 empty:hidden">
        {retry !== undefined && !isMissing && <Button onClick={retry}>Try again</Button>}
        {list !== undefined && (
          <Link to={list.to} className={buttonClasses(isMissing ? 'plain' : 'quiet')}>
            {list.label}
          </Link>
        )}
      </div>
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
