import type { Summary as Counts } from '@muster/protocol';
import type { Tone } from './badge.tsx';
import { classNames } from './class-names.ts';
import { type ResultKind, summaryParts } from './resource/resource-groups.ts';

const tones: Record<Tone, string> = {
  good: 'text-good',
  warn: 'text-warn',
  bad: 'text-bad',
  info: 'text-info',
  neutral: 'text-muted',
};

/** An operation's nonzero counts on one line. */
export function SummaryLine({
  summary,
  resultKind,
  wrap = false,
}: {
  readonly summary: Counts | null;
  readonly resultKind: ResultKind;
  /** Whether the line wraps if space is short. By default it is truncated. */
  readonly wrap?: boolean;
}) {
  const parts = summary === null ? [] : summaryParts(summary, resultKind);
  if (parts.length === 0) return <span className="text-muted">–</span>;
  return (
    <span className={classNames('tabular', !wrap && 'truncate')}>
      {parts.map(({ text, tone }, index) => (
        <span key={text}>
          {index > 0 && <span className="text-muted"> · </span>}
          <span className={classNames('whitespace-nowrap', tones[tone])}>{text}</span>
        </span>
      ))}
    </span>
  );
}
