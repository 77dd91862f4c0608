import { type KeyboardEvent, useId, useMemo, useRef, useState } from 'react';
import { classNames } from '../class-names.ts';
import { Line } from '../text.tsx';
import { fieldClasses } from './field.tsx';

export interface PickerOption {
  readonly value: string;
  readonly label: string;
  /** Said behind it, smaller. */
  readonly detail?: string;
}

/** So many are offered at once; typing finds the others. */
const mostShown = 50;

/** Those that hold every word of the text, the ones that begin with it first. */
export function pickerMatches(options: readonly PickerOption[], text: string): PickerOption[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = options.filter(({ label, detail = '', value }) => {
    const whole = `${label} ${detail} ${value}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
  const first = words[0];
  if (first === undefined) return found;
  const begins = ({ label }: PickerOption) => (label.toLowerCase().startsWith(first) ? 0 : 1);
  return found.sort((a, b) => begins(a) - begins(b));
}

/** Chooses one of many by typing some of it. */
export function Picker({
  label,
  hideLabel = false,
  options,
  value,
  onPick,
  placeholder,
  none = 'Nothing is called that',
  error = null,
}: {
  readonly label: string;
  readonly hideLabel?: boolean;
  readonly options: readonly PickerOption[];
  /** What is chosen; empty: nothing. */
  readonly value: string;
  readonly onPick: (value: string) => void;
  readonly placeholder?: string;
  /** Said when nothing is found. */
  readonly none?: string;
  readonly error?: string | null | undefined;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  /** Null: the list is closed, and the field shows what is chosen. */
  const [text, setText] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const found = useMemo(() => (text === null ? [] : pickerMatches(options, text)), [options, text]);
  const shown = found.slice(0, mostShown);
  const chosen = options.find((option) => option.value === value);
  const pick = (option: PickerOption | undefined) => {
    if (option === undefined) return;
    onPick(option.value);
    setText(null);
  };
  const move = (to: number) => {
    const next = Math.max(0, Math.min(shown.length - 1, to));
    setAt(next);
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (text === null) setText('');
      else move(at + (event.key === 'ArrowDown' ? 1 : -1));
    } else if (event.key === 'Enter' && text !== null) {
      event.preventDefault();
      pick(shown[at]);
    } else if (event.key === 'Escape' && text !== null) {
      event.preventDefault();
      event.stopPropagation();
      setText(null);
    }
  };
  return (
    <div className="relative min-w-0">
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block font-medium text-sm'}>
        {label}
      </label>
      <input
        id={id}
        role="combobox"
        aria-expanded={text !== null}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={text !== null && shown.length > 0 ? `${id}-${at}` : undefined}
        aria-invalid={error ? true : undefined}
        aria-describedby={error ? `${id}-error` : undefined}
        autoComplete="off"
        spellCheck={false}
        className={classNames(fieldClasses, 'h-8')}
        placeholder={placeholder}
        value={text ?? chosen?.label ?? value}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onFocus={(event) => event.target.select()}
        onClick={() => setText(text ?? '')}
        onBlur={() => setText(null)}
        onKeyDown={onKeyDown}
      />
      {text !== null && (
        <div className="absolute inset-x-0 top-full z-30 mt-1 overflow-hidden rounded-lg border bg-surface shadow-float">
          <div ref={list} id={`${id}-list`} role="listbox" aria-label={label} className="max-h-64 overflow-y-auto p-1">
            {shown.map((option, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: keys are heard where one types
              <div
                key={option.value}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === at}
                className={classNames(
                  'flex h-8 cursor-default items-center gap-3 rounded-md px-2 text-sm',
                  index === at && 'bg-hover',
                )}
                onMouseMove={() => setAt(index)}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => pick(option)}
              >
                <span className="flex min-w-0 flex-1">
                  <Line text={option.label} />
                </span>
                {option.detail !== undefined && <span className="shrink-0 text-muted text-xs">{option.detail}</span>}
              </div>
            ))}
          </div>
          {shown.length === 0 && <p className="px-3 py-2 text-muted text-sm">{none}</p>}
          {found.length > shown.length && (
            <p className="border-t px-3 py-1.5 text-muted text-xs">
              {found.length - shown.length} more: type to find one
            </p>
          )}
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
