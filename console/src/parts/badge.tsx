import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';

/**
 * Meanings of states. Each has a color: `good` is as desired, `warn` needs a decision or an action, `bad` is failed or
 * lost, `info` is in progress, `neutral` is everything else. A badge always has text as well, because color alone is
 * not accessible.
 */
export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'neutral';
/** Tones of badges, dots, and bars. `mild` can wait, unlike `warn`, and `faint` is a lighter `neutral`. */
export type StateTone = Tone | 'mild' | 'faint';

const soft: Record<StateTone, string> = {
  good: 'bg-good-soft text-good',
  warn: 'bg-warn-soft text-warn',
  bad: 'bg-bad-soft text-bad',
  info: 'bg-info-soft text-info',
  neutral: 'bg-raised text-muted',
  mild: 'bg-mild-soft text-mild',
  faint: 'bg-raised text-muted',
};
/** Background colors of bars. */
export const fills: Record<StateTone, string> = {
  good: 'bg-good',
  warn: 'bg-warn-mark',
  bad: 'bg-bad',
  info: 'bg-info',
  neutral: 'bg-line-strong',
  mild: 'bg-mild',
  faint: 'bg-faint',
};

/** Shapes of dots, which distinguish the tones without color. */
const shapes: Record<StateTone, string> = {
  good: 'rounded-full',
  warn: 'rotate-45 scale-85 rounded-[1px]',
  bad: 'rounded-[1px]',
  info: 'rounded-full',
  neutral: 'rounded-full',
  mild: '[clip-path:polygon(50%_0,100%_100%,0_100%)]',
  faint: 'rounded-full border-2 border-line-strong',
};

/**
 * The dot of a tone. It needs text next to it.
 * @param fill background color, if it differs from the tone's color
 */
export const Mark = ({
  tone,
  fill = tone === 'faint' ? '' : fills[tone],
  live = false,
}: {
  readonly tone: StateTone;
  readonly fill?: string;
  readonly live?: boolean;
}) => (
  <span aria-hidden="true" className={classNames('size-2 shrink-0', shapes[tone], fill, live && 'animate-pulse')} />
);

export function Badge({ tone = 'neutral', children }: { readonly tone?: StateTone; readonly children: ReactNode }) {
  return (
    <span
      className={classNames(
        'inline-flex h-5 max-w-full shrink-0 items-center gap-1 truncate rounded px-1.5 font-medium text-xs',
        soft[tone],
      )}
    >
      {children}
    </span>
  );
}

/**
 * A dot in the color and shape of a tone, before a label.
 * @param live whether the dot is animated
 */
export function Dot({
  tone,
  live = false,
  children,
}: {
  readonly tone: StateTone;
  readonly live?: boolean;
  readonly children?: ReactNode;
}) {
  return (
    <span className="inline-flex min-w-0 items-center gap-1.5">
      <Mark tone={tone} live={live} />
      {children !== undefined && <span className="truncate">{children}</span>}
    </span>
  );
}

/** The state of a page's object, next to its name: a badge with a dot. */
export const StateBadge = ({
  tone,
  live = false,
  children,
}: {
  readonly tone: StateTone;
  readonly live?: boolean;
  readonly children: ReactNode;
}) => (
  <Badge tone={tone}>
    <Dot tone={tone} live={live}>
      {children}
    </Dot>
  </Badge>
);
