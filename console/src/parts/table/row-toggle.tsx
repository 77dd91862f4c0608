import { ChevronRight } from 'lucide-react';
import { type ReactNode, useCallback, useState } from 'react';
import { classNames } from '../class-names.ts';
import { Line } from '../text.tsx';
import { toggled } from './choosing.ts';

/** Stores which rows of a table are open, by key. */
export function useOpenRows() {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback((key: string) => setOpen((before) => toggled(before, key)), []);
  const show = useCallback((key: string) => setOpen((before) => new Set([...before, key])), []);
  return { open, toggle, show };
}

/**
 * A row's name, as a button that opens and closes the row. On all pages, a chevron that points right expands content in
 * place, one that points down opens a list of choices, and arrows sort or lead to another page.
 */
export const RowToggle = ({
  name,
  isOpen,
  onToggle,
  link,
}: {
  readonly name: string;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  /** A link to the page of the row's object, as its name. The button then has only the chevron. */
  readonly link?: ReactNode;
}) =>
  link === undefined ? (
    <button
      type="button"
      aria-expanded={isOpen}
      onClick={onToggle}
      className="relative -left-1 flex min-h-6 min-w-0 max-w-full items-center gap-1 rounded text-left font-medium"
    >
      <Chevron isOpen={isOpen} />
      <Line text={name} maxLength={64} />
    </button>
  ) : (
    <span className="relative -left-1 flex min-h-6 min-w-0 max-w-full items-center font-medium">
      <button
        type="button"
        aria-expanded={isOpen}
        aria-label={name}
        onClick={onToggle}
        className="-ml-1 flex size-6 shrink-0 items-center justify-center rounded hover:bg-hover max-sm:-my-2.5 max-sm:-ml-3.5 max-sm:size-11"
      >
        <Chevron isOpen={isOpen} />
      </button>
      {link}
    </span>
  );

const Chevron = ({ isOpen }: { readonly isOpen: boolean }) => (
  <ChevronRight
    aria-hidden="true"
    className={classNames('size-4 shrink-0 text-muted transition-transform duration-100', isOpen && 'rotate-90')}
  />
);
