import type { ReactNode } from 'react';
import type { Tone } from './badge.tsx';
import { classNames } from './class-names.ts';

type CalloutTone = Tone | 'mild';

const looks: Record<CalloutTone, string> = {
  good: 'border-good/40 bg-good-soft',
  warn: 'border-warn/40 bg-warn-soft',
  bad: 'border-bad/40 bg-bad-soft',
  info: 'border-info/40 bg-info-soft',
  mild: 'border-mild/40 bg-mild-soft',
  neutral: 'bg-surface',
};
const titles: Record<CalloutTone, string> = {
  good: 'text-good',
  warn: 'text-warn',
  bad: 'text-bad',
  info: 'text-info',
  mild: 'text-mild',
  neutral: '',
};

/** A message at the top of a page that needs attention, with buttons for the next actions. */
export function Callout({
  tone,
  title,
  children,
  action,
}: {
  readonly tone: CalloutTone;
  readonly title: ReactNode;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <div
      className={classNames('flex flex-wrap items-center gap-x-4 gap-y-2 rounded-lg border px-4 py-2.5', looks[tone])}
    >
      <div className="min-w-0 flex-1 basis-60 text-sm">
        <p className={classNames('font-medium', titles[tone])}>{title}</p>
        {children !== undefined && <div className="text-text">{children}</div>}
      </div>
      {action !== undefined && <div className="flex flex-wrap gap-2">{action}</div>}
    </div>
  );
}
