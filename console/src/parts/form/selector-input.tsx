import { type ParsedSelector, parseSelector } from '@muster/protocol/selector';
import { type KeyboardEvent, type ReactNode, type Ref, useId, useLayoutEffect, useRef, useState } from 'react';
import { classNames } from '../class-names.ts';
import { Line } from '../text.tsx';
import { fieldClasses } from './field.tsx';
import { SearchIcon } from './search-input.tsx';
import { type CompletionOption, completionAt, type SelectorVocabulary } from './selector-completion.ts';

interface Options {
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Called on Enter, unless Enter accepts a completion. */
  readonly onSubmit?: (() => void) | undefined;
  readonly vocabulary: SelectorVocabulary;
  /** Parses the text; by default, all of it is a selector. */
  readonly parse?: (text: string) => ParsedSelector;
  /**
   * Whether the field is the page's search, which may contain other words. If so, Enter and Down move to the rows
   * (app/shortcuts.ts) unless the operator chose a completion.
   */
  readonly isSearch?: boolean;
}

/** Returns a selector field's suggestions, and handlers for keys and typing. */
function useSelectorField(options: Options) {
  const { value, onChange, onSubmit, vocabulary, parse = parseSelector, isSearch = false } = options;
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const [cursor, setCursor] = useState(0);
  const [active, setActive] = useState<number | null>(null);
  /** Cursor position to set after the new text is rendered. */
  const [nextCursor, setNextCursor] = useState<number | null>(null);
  useLayoutEffect(() => {
    if (nextCursor === null) return;
    field.current?.setSelectionRange(nextCursor, nextCursor);
    setNextCursor(null);
  }, [nextCursor]);

  const completion = open ? completionAt(value, Math.min(cursor, value.length), vocabulary) : null;
  const suggestions = completion?.options ?? [];
  const shown = suggestions.length > 0;
  // Enter accepts the first option if its start is typed; otherwise it submits the selector.
  const at = active ?? (completion?.hasPrefix && !isSearch ? 0 : -1);
  useLayoutEffect(() => {
    if (shown && at >= 0) list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
  }, [shown, at]);

  const parsed = parse(value);
  const accept = (option: CompletionOption) => {
    if (completion === null) return;
    const rest = value.slice(completion.to);
    const insert = rest.startsWith(' ') ? option.insert.trimEnd() : option.insert;
    onChange(value.slice(0, completion.from) + insert + rest);
    const end = completion.from + insert.length;
    setCursor(end);
    setNextCursor(end);
    setActive(null);
    field.current?.focus();
  };
  const enter = (event: KeyboardEvent<HTMLInputElement>) => {
    const option = shown ? suggestions[at] : undefined;
    const isTyped = option !== undefined && value.slice(completion?.from, completion?.to) === option.insert.trimEnd();
    if (option !== undefined && !(isTyped && parsed.ok)) {
      event.preventDefault();
      accept(option);
      return;
    }
    setOpen(false);
    if (onSubmit !== undefined) event.preventDefault();
    onSubmit?.();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (isSearch && !shown) return;
      event.preventDefault();
      if (!open) setOpen(true);
      else if (shown)
        setActive((at + (event.key === 'ArrowDown' ? 1 : at < 0 ? 0 : -1) + suggestions.length) % suggestions.length);
    } else if (event.key === 'Enter') enter(event);
    else if (event.key === 'Escape' && shown) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    }
  };
  const type = (input: HTMLInputElement) => {
    onChange(input.value);
    setCursor(input.selectionStart ?? input.value.length);
    setActive(null);
    setOpen(true);
  };
  // While the operator types, an error after the cursor is expected.
  const isUnfinished = open && !parsed.ok && parsed.fault.column > cursor;
  const fault = parsed.ok || isUnfinished ? null : `Column ${parsed.fault.column}: ${parsed.fault.message}`;
  return { field, list, options: suggestions, shown, at, fault, accept, onKeyDown, type, setCursor, setOpen };
}

/** A selector field. Completes keys, operators, and the fleet's values, and shows the column of a syntax error. */
export function SelectorInput({
  label,
  hideLabel = false,
  hint,
  error = null,
  placeholder = 'role=web site in (paris,berlin)',
  className,
  ...options
}: Options & {
  readonly label: string;
  readonly hideLabel?: boolean;
  /** Shown below the field unless there is an error, for example the number of matching agents. */
  readonly hint?: ReactNode;
  /** Shown unless there is a syntax error. */
  readonly error?: string | null | undefined;
  readonly placeholder?: string;
  readonly className?: string;
}) {
  const id = useId();
  const completion = useSelectorField(options);
  const { shown, at } = completion;
  const fault = completion.fault ?? error ?? null;
  return (
    <div className={classNames('relative min-w-0', className)}>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block font-medium text-sm'}>
        {label}
      </label>
      {options.isSearch && <SearchIcon />}
      <input
        ref={completion.field}
        type={options.isSearch ? 'search' : 'text'}
        data-search={options.isSearch || undefined}
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
        className={classNames(fieldClasses, 'h-8 max-sm:h-11', options.isSearch ? 'pl-8' : 'font-mono text-xs')}
        value={options.value}
        onChange={(event) => completion.type(event.target)}
        onSelect={(event) => completion.setCursor(event.currentTarget.selectionStart ?? 0)}
        onClick={() => completion.setOpen(options.isSearch !== true)}
        onBlur={() => completion.setOpen(false)}
        onKeyDown={completion.onKeyDown}
      />
      <CompletionList
        {...{ id, at }}
        label={`Completions of ${label}`}
        list={completion.list}
        options={completion.options}
        onAccept={completion.accept}
      />
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

function CompletionList({
  id,
  label,
  list,
  options,
  at,
  onAccept,
}: {
  readonly id: string;
  readonly label: string;
  readonly list: Ref<HTMLDivElement>;
  readonly options: readonly CompletionOption[];
  /** Index of the highlighted option; -1 if there is none. */
  readonly at: number;
  readonly onAccept: (option: CompletionOption) => void;
}) {
  return (
    <div
      ref={list}
      id={`${id}-list`}
      role="listbox"
      aria-label={label}
      hidden={options.length === 0}
      className="absolute inset-x-0 top-full z-30 mt-1 max-h-72 overflow-y-auto rounded-lg border bg-surface p-1 shadow-float"
    >
      {options.map((option, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the focus and handles the keys
        <div
          key={option.label}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          // Keeps the focus in the input.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onAccept(option)}
          className={classNames(
            'flex h-7 max-sm:h-11 cursor-default items-center gap-3 rounded-md px-2 text-xs',
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
  );
}
