import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';
import { classNames } from './class-names.ts';

/** `remove` is the primary button of a dialog that removes something. */
export type ButtonLook = 'primary' | 'remove' | 'plain' | 'quiet' | 'danger';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: ButtonLook;
  readonly small?: boolean;
  readonly icon?: ReactNode;
  /** Whether to disable the button and show progress. */
  readonly busy?: boolean;
  readonly ref?: Ref<HTMLButtonElement>;
}

/** A filled button that is disabled is gray: in a paler color, it would look like another enabled button. */
const filledOff =
  'disabled:not-aria-busy:border-line disabled:not-aria-busy:bg-raised disabled:not-aria-busy:text-muted aria-disabled:border-line aria-disabled:bg-raised aria-disabled:text-muted';

export const buttonClasses = (look: ButtonLook = 'plain', small = false, square = false): string =>
  classNames(
    'inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md border font-medium transition-colors duration-100 disabled:cursor-not-allowed disabled:opacity-60 aria-disabled:cursor-not-allowed aria-disabled:opacity-60',
    small ? 'h-7 text-xs' : 'h-8 text-sm',
    square ? (small ? 'w-7' : 'w-8') : small ? 'px-2' : 'px-3',
    // A touch target needs 44 px. A small button looks smaller, but also reacts to touches around its border.
    small ? 'max-sm:relative max-sm:h-9 max-sm:after:absolute max-sm:after:-inset-1' : 'max-sm:h-11',
    square && (small ? 'max-sm:w-9' : 'max-sm:w-11'),
    (look === 'primary' || look === 'remove') && filledOff,
    look === 'primary' && 'border-transparent bg-accent text-on-accent enabled:hover:bg-accent-hover',
    look === 'remove' && 'border-transparent bg-bad text-surface enabled:hover:brightness-90',
    look === 'plain' && 'border-line bg-surface text-text shadow-xs hover:bg-hover',
    // Muted text without a border would look disabled. An icon without text is recognizable.
    look === 'quiet' &&
      (square
        ? 'border-transparent bg-transparent text-muted hover:bg-hover hover:text-text'
        : 'border-transparent bg-transparent text-accent hover:bg-accent-soft hover:text-accent-hover'),
    look === 'danger' && 'border-line bg-surface text-bad hover:border-bad hover:bg-bad-soft',
  );

export function Button({ look, small, icon, busy, children, className, disabled, type, ...rest }: ButtonProps) {
  return (
    <button
      type={type ?? 'button'}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      className={classNames(buttonClasses(look, small), className)}
      {...rest}
    >
      {icon}
      {children}
      {busy && <span aria-hidden="true" className="ml-0.5 size-1.5 animate-pulse rounded-full bg-current" />}
    </button>
  );
}

/** A button that shows only an icon. The label is its accessible name and tooltip. */
export function IconButton({
  label,
  icon,
  look = 'quiet',
  small,
  className,
  type,
  ...rest
}: Omit<ButtonProps, 'children'> & { readonly label: string }) {
  return (
    <button
      type={type ?? 'button'}
      aria-label={label}
      title={label}
      className={classNames(buttonClasses(look, small, true), className)}
      {...rest}
    >
      {icon}
    </button>
  );
}
