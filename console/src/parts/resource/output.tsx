import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Dot } from '../badge.tsx';
import { classNames } from '../class-names.ts';
import { CopyButton } from '../copy.tsx';
import { cutText, visibleText } from '../text.tsx';
import { longestOf, type OutputLine, outputLines, type SpanTone } from './ansi.ts';
import { walkLines } from './walk-lines.ts';

const tones: Record<Exclude<SpanTone, null>, string> = {
  good: 'text-good',
  warn: 'text-warn',
  bad: 'text-bad',
  info: 'text-info',
  muted: 'text-muted',
};

/** Pixels. */
const lineHeight = 20;
const maxLineLength = 4_000;

/** Keeps the newest line in view until the operator scrolls up. Scrolls to the line in the URL fragment. */
function useOutputScroll(lines: readonly OutputLine[], running: boolean, markedAt: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(running);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    overscan: 20,
  });
  useEffect(() => {
    if (follows && lines.length > 0) virtualizer.scrollToIndex(lines.length - 1, { align: 'end' });
  }, [follows, lines, virtualizer]);
  useEffect(() => {
    if (markedAt < 0) return;
    setFollows(false);
    virtualizer.scrollToIndex(markedAt, { align: 'center' });
    scroller.current?.scrollIntoView({ block: 'nearest' });
  }, [markedAt, virtualizer]);
  return { scroller, virtualizer, follows, setFollows };
}

/** Program output as lines of text. Keeps colors and removes all other terminal control sequences. */
export function Output({
  text,
  label,
  running = false,
  truncated = false,
  line: marked = null,
  onLine,
}: {
  readonly text: string;
  readonly label: string;
  readonly running?: boolean;
  readonly truncated?: boolean;
  /** Line to highlight, such as `L12`. */
  readonly line?: string | null;
  readonly onLine?: (line: string) => void;
}) {
  const lines = useMemo(() => outputLines(text), [text]);
  const markedAt = marked === null ? -1 : Number(marked.slice(1)) - 1;
  const { scroller, virtualizer, follows, setFollows } = useOutputScroll(lines, running, markedAt);
  // The longest line determines the width, because lines do not wrap.
  const width = useMemo(() => Math.min(maxLineLength, longestOf(lines)), [lines]);
  return (
    <div className="min-w-0 overflow-hidden rounded-md border">
      <div className="flex h-8 items-center gap-2 border-b bg-raised px-2.5 text-muted text-xs">
        <span className="flex-1 truncate">{label}</span>
        {running && <FollowSwitch follows={follows} onChange={setFollows} />}
        <span className="tabular">{lines.length === 1 ? '1 line' : `${lines.length} lines`}</span>
        <CopyButton text={text} label="Copy output" />
      </div>
      <div
        ref={scroller}
        role="group"
        aria-label={label}
        tabIndex={0}
        className="max-h-[60vh] overflow-auto py-1"
        onKeyDown={walkLines}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          if (follows && scrollTop + clientHeight < scrollHeight - 3 * lineHeight) setFollows(false);
        }}
      >
        <div
          className="relative min-w-full font-mono text-xs"
          style={{ height: virtualizer.getTotalSize(), width: `${width + 8}ch` }}
        >
          {virtualizer.getVirtualItems().map(({ index, start }, at) => (
            <div
              key={index}
              aria-current={index === markedAt || undefined}
              className={classNames(
                'absolute inset-x-0 top-0 flex h-5 items-center',
                index === markedAt && 'bg-accent-soft',
              )}
              style={{ transform: `translateY(${start}px)` }}
            >
              <LineNumber number={index + 1} isTabStop={at === 0} onLine={onLine} />
              <Spans line={lines[index] as OutputLine} />
            </div>
          ))}
        </div>
      </div>
      {truncated && (
        <p className="border-t px-2.5 py-1 text-muted text-xs">
          The output exceeded the limit, and the rest was discarded.
        </p>
      )}
    </div>
  );
}

const FollowSwitch = ({
  follows,
  onChange,
}: {
  readonly follows: boolean;
  readonly onChange: (follows: boolean) => void;
}) => (
  <>
    <button
      type="button"
      aria-pressed={follows}
      onClick={() => onChange(!follows)}
      className={classNames('rounded px-1.5 py-0.5 hover:bg-hover', follows && 'text-accent')}
    >
      {follows ? 'Following' : 'Follow'}
    </button>
    <Dot tone="info" live>
      running
    </Dot>
  </>
);

function LineNumber({
  number,
  isTabStop,
  onLine,
}: {
  readonly number: number;
  readonly isTabStop: boolean;
  readonly onLine: ((line: string) => void) | undefined;
}) {
  return (
    <span className="w-12 shrink-0 select-none pr-3 text-right text-muted">
      {onLine === undefined ? (
        number
      ) : (
        <button
          type="button"
          data-line
          tabIndex={isTabStop ? 0 : -1}
          aria-label={`Link to line ${number}`}
          className="hover:text-accent hover:underline"
          onClick={() => onLine(`L${number}`)}
        >
          {number}
        </button>
      )}
    </span>
  );
}

function Spans({ line }: { readonly line: OutputLine }) {
  return (
    <bdi className="whitespace-pre">
      {line.map(({ text, tone, bold }, index) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
          key={index}
          className={classNames(tone !== null && tones[tone], bold && 'font-semibold')}
        >
          {visibleText(cutText(text, maxLineLength))}
        </span>
      ))}
    </bdi>
  );
}
