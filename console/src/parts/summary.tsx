import type { Summary } from '@muster/protocol';
import type { Tone } from './badge.tsx';
import { Counts } from './counts.tsx';
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
  readonly summary: Summary | null;
  readonly resultKind: ResultKind;
  /** Whether the line wraps if space is short. By default it is truncated. */
  readonly wrap?: boolean;
}) {
  const parts = summary === null ? [] : summaryParts(summary, resultKind);
  if (parts.length === 0) return <span className="text-muted">–</span>;
  const items = parts.map(({ text, tone }) => ({ key: text, text, className: tones[tone] }));
  return <Counts items={items} wrap={wrap} />;
}
