import { useEffect, useMemo, useRef, useState } from 'react';
import { Button } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { cutText, visibleText } from '../text.tsx';
import { type DiffLine, diffLines } from './diff-lines.ts';
import { walkLines } from './walk-lines.ts';

const looks: Record<DiffLine['kind'], string> = {
  added: 'bg-good-soft',
  removed: 'bg-bad-soft',
  same: '',
  hunk: 'bg-raised text-muted',
  note: 'text-muted italic',
};
const signs: Record<DiffLine['kind'], string> = { added: '+', removed: '−', same: ' ', hunk: '', note: '' };

/** Number of lines to render at first. */
const firstLines = 300;

/** Returns a line's name in the URL: `L` and its new number, or `B` and its old number if it was removed. */
const lineName = ({ before, after }: DiffLine): string | null =>
  after !== null ? `L${after}` : before !== null ? `B${before}` : null;

/**
 * A unified diff with old and new line numbers.
 * @param line the line to highlight and scroll to, such as `L12` or `B3`
 * @param onLine if given, line numbers are buttons that call it
 */
export function Diff({
  unified,
  label,
  line: marked = null,
  onLine,
}: {
  readonly unified: string;
  readonly label: string;
  readonly line?: string | null;
  readonly onLine?: (line: string) => void;
}) {
  const lines = useMemo(() => diffLines(unified), [unified]);
  const [wantsAll, setAll] = useState(false);
  const markedAt = marked === null ? -1 : lines.findIndex((line) => lineName(line) === marked);
  const all = wantsAll || markedAt >= firstLines;
  const shown = all ? lines : lines.slice(0, firstLines);
  const stop = markedAt >= 0 ? markedAt : shown.findIndex((line) => lineName(line) !== null);
  const markedRow = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (markedAt >= 0) markedRow.current?.scrollIntoView({ block: 'center' });
  }, [markedAt]);
  return (
    <div className="min-w-0 overflow-hidden rounded-md border">
      <div className="overflow-x-auto" tabIndex={0} role="group" aria-label={label} onKeyDown={walkLines}>
        <table className="w-full border-collapse font-mono text-xs leading-5">
          <tbody>
            {shown.map((line, index) => (
              <tr
                // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity and never move
                key={index}
                ref={index === markedAt ? markedRow : null}
                aria-current={index === markedAt || undefined}
                className={classNames(looks[line.kind], index === markedAt && 'bg-accent-soft')}
              >
                <td className="w-px select-none whitespace-nowrap pr-1 pl-2 text-right text-muted">
                  <LineNumber
                    line={line}
                    number={line.before}
                    isMain={line.after === null}
                    isStop={index === stop}
                    onLine={onLine}
                  />
                </td>
                <td className="w-px select-none whitespace-nowrap px-1 text-right text-muted">
                  <LineNumber line={line} number={line.after} isMain isStop={index === stop} onLine={onLine} />
                </td>
                <td
                  className={classNames(
                    'w-px select-none px-1',
                    line.kind === 'added' && 'text-good',
                    line.kind === 'removed' && 'text-bad',
                  )}
                >
                  {signs[line.kind]}
                </td>
                <td className="whitespace-pre pr-3">
                  <bdi>{visibleText(cutText(line.text, 4_000))}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < lines.length && (
        <div className="border-t p-2 text-center">
          <Button small onClick={() => setAll(true)}>
            Show {lines.length - shown.length} more lines
          </Button>
        </div>
      )}
    </div>
  );
}

function LineNumber({
  line,
  number,
  isMain,
  isStop,
  onLine,
}: {
  readonly line: DiffLine;
  readonly number: number | null;
  /** Whether this line number is the one that identifies the line in the URL. */
  readonly isMain: boolean;
  /** Whether the Tab key reaches this line number. */
  readonly isStop: boolean;
  readonly onLine: ((line: string) => void) | undefined;
}) {
  const name = lineName(line);
  if (number === null) return null;
  if (onLine === undefined || name === null) return number;
  return (
    <button
      type="button"
      data-line={isMain || undefined}
      tabIndex={isMain && isStop ? 0 : -1}
      className="hover:text-accent hover:underline"
      aria-label={`Link to line ${number}`}
      onClick={() => onLine(name)}
    >
      {number}
    </button>
  );
}
