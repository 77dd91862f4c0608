import { type KeyboardEvent, type Ref, useId, useMemo, useRef, useState } from 'react';
import { classNames } from '../class-names.ts';
import { Line } from '../text.tsx';
import { fieldClasses } from './field.tsx';

export interface PickerOption {
  readonly value: string;
  readonly label: string;
  /** Text in a smaller font after the label. */
  readonly detail?: string;
  /** Whether the option cannot be chosen. `detail` states the reason. */
  readonly disabled?: boolean;
}

/** Maximum number of options to show. Typing narrows down the rest. */
const maxShown = 50;

/** Returns the options that contain every word of the text. Labels that start with the first word come first. */
export function pickerMatches(options: readonly PickerOption[], text: string): PickerOption[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = options.filter(({ label, detail = '', value }) => {
    const searchText = `${label} ${detail} ${value}`.toLowerCase();
    return words.every((word) => searchText.includes(word));
  });
  const first = words[0];
  if (first === undefined) return found;
  const begins = ({ label }: PickerOption) => (label.toLowerCase().startsWith(first) ? 0 : 1);
  return found.sort((a, b) => begins(a) - begins(b));
}

interface PickerState {
  /** The typed text. If null, the list is closed and the field shows the current choice. */
  readonly text: string | null;
  readonly shown: readonly PickerOption[];
  /** Number of matching options that are not shown. */
  readonly more: number;
  /** Index of the highlighted option. */
  readonly at: number;
}

/** Filters the options by the typed text and handles the keys. */
function usePicker(options: readonly PickerOption[], onPick: (value: string) => void, isOpenAtFirst: boolean) {
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState<string | null>(isOpenAtFirst ? '' : null);
  const [at, setAt] = useState(0);
  const found = useMemo(() => (text === null ? [] : pickerMatches(options, text)), [options, text]);
  const shown = found.slice(0, maxShown);
  const pick = (option: PickerOption | undefined) => {
    if (option === undefined || option.disabled) return;
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
  const type = (next: string) => {
    setText(next);
    setAt(0);
  };
  const state: PickerState = { text, shown, more: found.length - shown.length, at };
  return { state, list, setText, setAt, type, pick, onKeyDown };
}

/**
 * A combobox: the operator types part of an option to choose it. Not based on cmdk, whose input always has
 * `aria-expanded="true"` and therefore no closed state.
 */
export function Picker({
  label,
  hideLabel = false,
  options,
  value,
  onPick,
  placeholder,
  none = 'No match',
  error = null,
  isOpenAtFirst = false,
}: {
  readonly label: string;
  readonly hideLabel?: boolean;
  readonly options: readonly PickerOption[];
  /** The current choice; empty if there is none. */
  readonly value: string;
  readonly onPick: (value: string) => void;
  readonly placeholder?: string;
  /** Shown if no option matches. */
  readonly none?: string;
  readonly error?: string | null | undefined;
  /** Whether the field has the focus and its list is open initially. */
  readonly isOpenAtFirst?: boolean;
}) {
  const id = useId();
  const { state, list, setText, setAt, type, pick, onKeyDown } = usePicker(options, onPick, isOpenAtFirst);
  const { text, shown, at } = state;
  const current = options.find((option) => option.value === value);
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
        // biome-ignore lint/a11y/noAutofocus: in a dialog that only asks for the choice
        autoFocus={isOpenAtFirst}
        className={classNames(fieldClasses, 'h-8 max-sm:h-11')}
        placeholder={placeholder}
        value={text ?? current?.label ?? value}
        onChange={(event) => type(event.target.value)}
        onFocus={(event) => event.target.select()}
        onClick={() => setText(text ?? '')}
        onBlur={() => setText(null)}
        onKeyDown={onKeyDown}
      />
      {text !== null && <PickerList {...{ id, label, none, state, list }} onHover={setAt} onPick={pick} />}
      {error && (
        <p id={`${id}-error`} className="mt-1 text-bad text-xs">
          {error}
        </p>
      )}
    </div>
  );
}

function PickerList({
  id,
  label,
  none,
  state: { shown, more, at },
  list,
  onHover,
  onPick,
}: {
  readonly id: string;
  readonly label: string;
  readonly none: string;
  readonly state: PickerState;
  readonly list: Ref<HTMLDivElement>;
  readonly onHover: (index: number) => void;
  readonly onPick: (option: PickerOption) => void;
}) {
  return (
    <div className="absolute inset-x-0 top-full z-30 mt-1 overflow-hidden rounded-lg border bg-surface shadow-float">
      <div ref={list} id={`${id}-list`} role="listbox" aria-label={label} className="max-h-64 overflow-y-auto p-1">
        {shown.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the focus and handles the keys
          <div
            key={option.value}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            aria-disabled={option.disabled}
            className={classNames(
              'flex h-8 cursor-default items-center gap-3 rounded-md px-2 text-sm',
              index === at && 'bg-hover',
              option.disabled && 'text-muted',
            )}
            onMouseMove={() => onHover(index)}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onPick(option)}
          >
            <span className="flex min-w-0 flex-1">
              <Line text={option.label} />
            </span>
            {option.detail !== undefined && <span className="shrink-0 text-muted text-xs">{option.detail}</span>}
          </div>
        ))}
      </div>
      {shown.length === 0 && <p className="px-3 py-2 text-muted text-sm">{none}</p>}
      {more > 0 && <p className="border-t px-3 py-1.5 text-muted text-xs">{more} more: type to find them</p>}
    </div>
  );
}
