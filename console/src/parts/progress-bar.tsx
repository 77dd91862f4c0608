import { classNames } from './class-names.ts';

/** A progress bar. Its track is styled, because some browsers draw an empty track as dark as a full bar. */
export function ProgressBar({
  label,
  value,
  max,
  className,
}: {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  readonly className?: string;
}) {
  return (
    <progress
      aria-label={label}
      max={max}
      value={value}
      className={classNames(
        'block h-1.5 w-full appearance-none overflow-hidden rounded-full bg-faint',
        '[&::-webkit-progress-bar]:bg-transparent [&::-webkit-progress-value]:bg-accent [&::-moz-progress-bar]:bg-accent',
        className,
      )}
    />
  );
}
