import { ChevronRight } from 'lucide-react';
import type { ReactNode } from 'react';

/** Details that most operators do not need, behind a line that shows them. */
export const Disclosure = ({ label, children }: { readonly label: string; readonly children: ReactNode }) => (
  <details className="group text-sm">
    <summary className="inline-flex list-none items-center gap-1 rounded text-muted hover:text-text max-sm:min-h-11 [&::-webkit-details-marker]:hidden">
      <ChevronRight aria-hidden="true" className="size-4 transition-transform group-open:rotate-90" />
      {label}
    </summary>
    <div className="mt-2 space-y-3">{children}</div>
  </details>
);
