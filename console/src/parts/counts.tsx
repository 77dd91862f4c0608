import { classNames } from './class-names.ts';

interface Count {
  readonly key: string;
  readonly text: string;
  readonly className: string;
}

/**
 * Counts with dots between them, on one line by default. If the line wraps, no dot begins or ends a line: each count
 * has the dot on its left, and a dot at the start of a line is outside the visible box.
 */
export function Counts({ items, wrap = false }: { readonly items: readonly Count[]; readonly wrap?: boolean }) {
  if (!wrap)
    return (
      <span className="tabular truncate">
        {items.map(({ key, text, className }, index) => (
          <span key={key}>
            {index > 0 && <span className="text-muted"> · </span>}
            <span className={classNames('whitespace-nowrap', className)}>{text}</span>
          </span>
        ))}
      </span>
    );
  return (
    <span className="tabular min-w-0 overflow-hidden">
      <span className="-ml-3 flex flex-wrap">
        {items.map(({ key, text, className }, index) => (
          <span key={key} className="flex whitespace-nowrap">
            <span className="w-3 text-center text-muted">{index > 0 && <span aria-hidden="true">·</span>}</span>
            <span className={className}>{text}</span>
            {/* Separates the counts for screen readers and in copied text. */}
            {index < items.length - 1 && <span className="sr-only">, </span>}
          </span>
        ))}
      </span>
    </span>
  );
}
