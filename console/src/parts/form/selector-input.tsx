import { parseSelector } from '@muster/protocol/selector';
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { classNames } from '../class-names.ts';
import { Line } from '../text.tsx';
import { fieldClasses } from './field.tsx';
import { type CompletionOption, completionAt, type SelectorVocabulary } from './selector-completion.ts';

/**
 * A field for a selector. It offers keys, operators and values of the fleet as one types, and tells what is wrong with
 * the column where it is wrong.
 */
export function SelectorInput({
  label,
  hideLabel = false,
  value,
  onChange,
  onSubmit,
  vocabulary,
  hint,
  error = null,
  placeholder = 'role=web site in (paris,berlin)',
  className,
}: {
  readonly label: string;
  readonly hideLabel?: boolean;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Enter, when nothing that is offered is taken by it. */
  readonly onSubmit?: () => void;
  readonly vocabulary: SelectorVocabulary;
  /** Under the field while nothing is wrong: what it matches, for one. */
  readonly hint?: ReactNode;
  /** What is wrong with it where its grammar is right. */
  readonly error?: string | null | undefined;
  readonly placeholder?: string;
  readonly className?: string;
}) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const [cursor, setCursor] = useState(0);
  const [active, setActive] = useState<number | null>(null);
  /** Where the cursor goes once the text is there. */
  const [goTo, setGoTo] = useState<number | null>(null);
  useLayoutEffect(() => {
    if (goTo === null) return;
    field.current?.setSelectionRange(goTo, goTo);
    setGoTo(null);
  }, [goTo]);

  const completion = open ? completionAt(value, Math.min(cursor, value.length), vocabulary) : null;
  const options = completion?.options ?? [];
  const shown = options.length > 0;
  // What is begun is what Enter most likely means; otherwise it means the whole.
  const at = active ?? (completion?.begun ? 0 : -1);
  useLayoutEffect(() => {
    if (shown && at >= 0) list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
  }, [shown, at]);

  const parsed = parseSelector(value);
  // Whoever is about to write on knows that it is not whole yet.
  const isWriting = open && !parsed.ok && parsed.fault.column > cursor;
  const fault = parsed.ok || isWriting ? (error ?? null) : `Column ${parsed.fault.column}: ${parsed.fault.message}`;

  const take = (option: CompletionOption) => {
    if (completion === null) return;
    const rest = value.slice(completion.to);
    const insert = rest.startsWith(' ') ? option.insert.trimEnd() : option.insert;
    onChange(value.slice(0, completion.from) + insert + rest);
    const end = completion.from + insert.length;
    setCursor(end);
    setGoTo(end);
    setActive(null);
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!open) setOpen(true);
      else if (shown)
        setActive((at + (event.key === 'ArrowDown' ? 1 : at < 0 ? 0 : -1) + options.length) % options.length);
    } else if (event.key === 'Enter') {
      const option = shown ? options[at] : undefined;
      const isWritten =
        option !== undefined && value.slice(completion?.from, completion?.to) === option.insert.trimEnd();
      if (option !== undefined && !(isWritten && parsed.ok)) {
        event.preventDefault();
        take(option);
      } else {
        setOpen(false);
        if (onSubmit !== undefined) event.preventDefault();
        onSubmit?.();
      }
    } else if (event.key === 'Escape' && shown) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    }
  };

  return (
    <div className={classNames('relative min-w-0', className)}>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block font-medium text-sm'}>
        {label}
      </label>
      <input
        ref={field}
        id={id}
        role="combobox"
        aria-expanded={shown}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={shown && at >= 0 ? `${id}-${at}` : undefined}
        aria-invalid={fault !== null || undefined}
        aria-describedby={`${id}-note`}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        placeholder={placeholder}
        className={classNames(fieldClasses, 'h-8 font-mono text-xs')}
        value={value}
        onChange={(event) => {
          onChange(event.target.value);
          setCursor(event.target.selectionStart ?? event.target.value.length);
          setActive(null);
          setOpen(true);
        }}
        onSelect={(event) => setCursor(event.currentTarget.selectionStart ?? 0)}
        onClick={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label={`What can be written next in ${label}`}
        hidden={!shown}
        className="absolute inset-x-0 top-full z-30 mt-1 max-h-72 overflow-y-auto rounded-lg border bg-surface p-1 shadow-float"
      >
        {options.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are heard by the field, which has the focus
          <div
            key={option.label}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            // The field keeps the focus.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(option)}
            className={classNames(
              'flex h-7 cursor-default items-center gap-3 rounded-md px-2 text-xs',
              index === at ? 'bg-accent-soft' : 'hover:bg-hover',
            )}
          >
            <span className="flex min-w-0 flex-1 font-mono">
              <Line text={option.label} />
            </span>
            <span className="shrink-0 text-muted">{option.detail}</span>
          </div>
        ))}
      </div>
      <div id={`${id}-note`} className="text-xs empty:hidden">
        {fault !== null ? (
          <p className="mt-1 text-bad">{fault}</p>
        ) : (
          hint !== undefined && <div className="mt-1 text-muted">{hint}</div>
        )}
      </div>
    </div>
  );
}
