import { useMemo, useState } from 'react';
import { Button } from './button.tsx';
import { classNames } from './class-names.ts';
import { type DiffLine, diffLines } from './diff-lines.ts';
import { cutText, visibleText } from './text.tsx';

const looks: Record<DiffLine['kind'], string> = {
  added: 'bg-good-soft',
  removed: 'bg-bad-soft',
  same: '',
  hunk: 'bg-raised text-muted',
  note: 'text-muted italic',
};
const signs: Record<DiffLine['kind'], string> = { added: '+', removed: '−', same: ' ', hunk: '', note: '' };

/** So many lines are drawn at first. */
const first = 300;

/** A unified diff, with line numbers before and after. */
export function Diff({ unified, label }: { readonly unified: string; readonly label: string }) {
  const lines = useMemo(() => diffLines(unified), [unified]);
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, first);
  return (
    <section aria-label={label} className="min-w-0 overflow-hidden rounded-md border">
      <div className="overflow-x-auto" tabIndex={0} role="group" aria-label={label}>
        <table className="w-full border-collapse font-mono text-xs leading-5">
          <tbody>
            {shown.map((line, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity, and never move
              <tr key={index} className={looks[line.kind]}>
                <td className="w-px select-none whitespace-nowrap pr-1 pl-2 text-right text-muted">{line.before}</td>
                <td className="w-px select-none whitespace-nowrap px-1 text-right text-muted">{line.after}</td>
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
    </section>
  );
}
