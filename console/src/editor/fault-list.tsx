import { CircleAlert, TriangleAlert } from 'lucide-react';
import { visibleText } from '../parts/text.tsx';
import type { Mark } from './faults.ts';

/** Lists errors by their position in the text. Clicking an error moves the cursor to its position. */
export function FaultList({
  marks,
  onGo,
}: {
  readonly marks: readonly Mark[];
  readonly onGo: (line: number, column: number) => void;
}) {
  return (
    <ul className="divide-y">
      {marks.map((mark, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two errors may have the same message and place
        <li key={index}>
          <button
            type="button"
            className="flex w-full items-start gap-2 px-3 py-1.5 text-left text-sm hover:bg-hover"
            onClick={() => onGo(mark.line, mark.column)}
          >
            {mark.severity === 'error' ? (
              <CircleAlert aria-hidden="true" className="mt-0.5 size-3.5 shrink-0 text-bad" />
            ) : (
              <TriangleAlert aria-hidden="true" className="mt-0.5 size-3.5 shrink-0 text-warn" />
            )}
            <span className="tabular w-16 shrink-0 font-mono text-muted text-xs leading-5">
              {mark.line}:{mark.column}
            </span>
            <span className="min-w-0 [overflow-wrap:anywhere]">
              <span className="sr-only">{mark.severity === 'error' ? 'Error: ' : 'Warning: '}</span>
              <bdi>{visibleText(mark.message)}</bdi>
              {mark.path !== '' && <code className="ml-2 font-mono text-muted text-xs">{visibleText(mark.path)}</code>}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
