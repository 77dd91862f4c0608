import { ChevronDown } from 'lucide-react';
import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { classNames } from '../class-names.ts';

/** Form fields with a label, a hint, and an error message. */

// iOS zooms into a field whose text is smaller than 16 px.
export const fieldClasses =
  'w-full min-w-0 rounded-md border border-line-strong bg-surface px-2.5 text-sm placeholder:text-muted hover:border-muted focus-visible:border-accent focus-visible:outline-2 focus-visible:-outline-offset-1 aria-invalid:border-bad disabled:opacity-60 max-sm:text-[1rem]';

export interface FieldProps {
  readonly label: ReactNode;
  /** Whether to hide the label visually. Screen readers still announce it. */
  readonly hideLabel?: boolean;
  readonly hint?: ReactNode;
  readonly error?: string | null | undefined;
}

function Field({
  label,
  hideLabel,
  hint,
  error,
  children,
}: FieldProps & {
  readonly children: (names: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode;
}) {
  const id = useId();
  const notes = [hint !== undefined && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className="min-w-0">
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block font-medium text-sm'}>
        {label}
      </label>
      {children({
        id,
        ...(notes === '' ? {} : { 'aria-describedby': notes }),
        ...(error ? { 'aria-invalid': true as const } : {}),
      })}
      {hint !== undefined && (
        <div id={`${id}-hint`} className="mt-1 text-muted text-xs">
          {hint}
        </div>
      )}
      {error && (
        <p id={`${id}-error`} className="mt-1 text-bad text-xs">
          {error}
        </p>
      )}
    </div>
  );
}

export function Input({
  label,
  hideLabel = false,
  hint,
  error,
  className,
  ...rest
}: FieldProps & InputHTMLAttributes<HTMLInputElement> & { readonly ref?: Ref<HTMLInputElement> }) {
  return (
    <Field label={label} hideLabel={hideLabel} hint={hint} error={error}>
      {(names) => (
        <input
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          className={classNames(fieldClasses, 'h-8 max-sm:h-11', className)}
          {...names}
          {...rest}
        />
      )}
    </Field>
  );
}

export function TextArea({
  label,
  hideLabel = false,
  hint,
  error,
  className,
  ...rest
}: FieldProps & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field label={label} hideLabel={hideLabel} hint={hint} error={error}>
      {(names) => (
        <textarea
          spellCheck={false}
          className={classNames(fieldClasses, 'min-h-20 py-1.5', className)}
          {...names}
          {...rest}
        />
      )}
    </Field>
  );
}

export function Select({
  label,
  hideLabel = false,
  hint,
  error,
  className,
  children,
  ...rest
}: FieldProps & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Field label={label} hideLabel={hideLabel} hint={hint} error={error}>
      {(names) => (
        <span className="relative block">
          <select
            className={classNames(fieldClasses, 'h-8 appearance-none pr-8 max-sm:h-11', className)}
            {...names}
            {...rest}
          >
            {children}
          </select>
          <ChevronDown
            aria-hidden="true"
            className="pointer-events-none absolute inset-y-0 right-3 my-auto size-3.5 text-muted"
          />
        </span>
      )}
    </Field>
  );
}

export function Checkbox({
  label,
  hint,
  ...rest
}: { readonly label: ReactNode; readonly hint?: ReactNode } & Omit<InputHTMLAttributes<HTMLInputElement>, 'type'>) {
  const id = useId();
  return (
    <div className="flex items-start gap-2 max-sm:min-h-11">
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 size-4 max-sm:mt-3.5 shrink-0"
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        {...rest}
      />
      <div className="min-w-0">
        <label htmlFor={id} className="text-sm max-sm:block max-sm:py-3">
          {label}
        </label>
        {hint !== undefined && (
          <div id={`${id}-hint`} className="text-muted text-xs">
            {hint}
          </div>
        )}
      </div>
    </div>
  );
}
