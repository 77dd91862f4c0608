import { ChevronRight } from 'lucide-react';
import { useCallback, useState } from 'react';
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
}: {
  readonly name: string;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}) => (
  <button
    type="button"
    aria-expanded={isOpen}
    onClick={onToggle}
    className="relative -left-1 flex min-h-6 min-w-0 max-w-full items-center gap-1 rounded text-left font-medium"
  >
    <ChevronRight
      aria-hidden="true"
      className={classNames('size-4 shrink-0 text-muted transition-transform duration-100', isOpen && 'rotate-90')}
    />
    <Line text={name} maxLength={64} />
  </button>
);
