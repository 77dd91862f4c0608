import type { Agent } from '@muster/protocol/http';
import { isTagKey, isTagValue } from '@muster/protocol/selector';
import { Plus, Trash2 } from 'lucide-react';
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { setTag, useSelectorVocabulary } from '../../api/tags.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { fieldClasses } from '../../parts/form/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Problem } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';

/** An agent's tags. The fields of a new tag are shown on request. */
export function TagsPanel({ agent }: { readonly agent: Agent }) {
  const [isAdding, setAdding] = useState(false);
  return (
    <Panel
      title="Tags"
      actions={
        !isAdding && (
          <Button small icon={<Plus aria-hidden="true" className="size-3.5" />} onClick={() => setAdding(true)}>
            Add tag
          </Button>
        )
      }
    >
      <TagsEditor agent={agent} isAdding={isAdding} onClose={() => setAdding(false)} />
    </Panel>
  );
}

/**
 * Edits an agent's tags in place: Enter saves, Escape cancels. A change is shown before the orchestrator confirms it.
 * @param isAdding whether to show the fields of a new tag
 * @param onClose called on Escape in the fields of a new tag
 */
export function TagsEditor({
  agent,
  isAdding = true,
  onClose,
}: {
  readonly agent: Agent;
  readonly isAdding?: boolean;
  readonly onClose?: () => void;
}) {
  const [error, setError] = useState<unknown>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const vocabulary = useSelectorVocabulary();
  const add = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const rows = useRef(new Map<string, HTMLButtonElement>());
  const entries = Object.entries(agent.tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const change = async (key: string, value: string | null) => {
    setError(null);
    try {
      await setTag(agent, key, value);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <div className="space-y-2">
      <ul ref={list} tabIndex={-1} aria-label="Tags" className="-mt-2 divide-y outline-none last:-mb-2">
        {entries.map(([key, value]) => (
          <li key={key} className="flex min-h-9 items-center gap-3 py-0.5 text-sm">
            <code className="w-2/5 min-w-0 shrink-0 truncate font-mono text-muted text-xs" title={key}>
              {key}
            </code>
            {editing === key ? (
              <ValueField
                label={`Value of ${key}`}
                value={value}
                options={vocabulary.values(key).map((each) => each.value)}
                onEnd={(next, by) => {
                  setEditing(null);
                  // Moves the focus from the input back to the row.
                  if (by === 'key') requestAnimationFrame(() => rows.current.get(key)?.focus());
                  if (next !== null && next !== value) void change(key, next);
                }}
              />
            ) : (
              <button
                type="button"
                ref={(button) => {
                  if (button === null) rows.current.delete(key);
                  else rows.current.set(key, button);
                }}
                aria-label={`${key}=${value}: change`}
                onClick={() => setEditing(key)}
                className="min-h-7 max-sm:min-h-11 min-w-0 flex-1 cursor-text rounded px-2 py-0.5 text-left hover:bg-hover"
              >
                {value === '' ? <span className="text-muted">(empty)</span> : <Text text={value} maxLength={120} />}
              </button>
            )}
            <IconButton
              small
              label={`Remove ${key}`}
              icon={<Trash2 aria-hidden="true" className="size-3.5" />}
              onClick={() => {
                void change(key, null);
                if (isAdding) add.current?.focus();
                else list.current?.focus();
              }}
            />
          </li>
        ))}
        {entries.length === 0 && (
          <li className="py-2 text-muted text-sm">No tags. Selectors match agents by their tags.</li>
        )}
      </ul>
      <Problem error={error} />
      {isAdding && (
        <NewTag
          isFocused={onClose !== undefined}
          onClose={onClose}
          keys={vocabulary
            .keys()
            .map(({ value }) => value)
            .filter((key) => !key.startsWith('attr.') && !Object.hasOwn(agent.tags, key))}
          values={(key) => vocabulary.values(key).map(({ value }) => value)}
          field={add}
          onAdd={(key, value) => void change(key, value)}
        />
      )}
    </div>
  );
}

function ValueField({
  label,
  value,
  options,
  onEnd,
}: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  /** Called when editing is finished, with null if it was canceled. */
  readonly onEnd: (value: string | null, by: 'key' | 'leaving') => void;
}) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const [text, setText] = useState(value);
  const ok = isTagValue(text);
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key === 'Enter' && ok) onEnd(text, 'key');
    else if (event.key === 'Escape') onEnd(null, 'key');
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <input
        ref={field}
        aria-label={label}
        aria-invalid={!ok || undefined}
        list={id}
        className={`${fieldClasses} h-7 max-sm:h-11`}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onBlur={() => onEnd(ok ? text : null, 'leaving')}
      />
      <datalist id={id}>
        {options.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}

/** Adds a tag. The key field also accepts `key=value`. */
function NewTag({
  keys,
  values,
  field,
  isFocused,
  onAdd,
  onClose,
}: {
  /** Whether the operator opened the fields, and is therefore about to type. */
  readonly isFocused: boolean;
  readonly onClose: (() => void) | undefined;
  readonly keys: readonly string[];
  readonly values: (key: string) => readonly string[];
  readonly field: React.RefObject<HTMLInputElement | null>;
  readonly onAdd: (key: string, value: string) => void;
}) {
  const id = useId();
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const [tried, setTried] = useState(false);
  const split = key.indexOf('=');
  const [name, tagValue] = split === -1 ? [key.trim(), value] : [key.slice(0, split).trim(), key.slice(split + 1)];
  const fault = !isTagKey(name)
    ? 'Start the key with a letter, and use only letters, digits, and . _ - /'
    : isTagValue(tagValue)
      ? null
      : 'Use at most 256 characters and no control characters in the value.';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (fault !== null) return;
    onAdd(name, tagValue);
    setKey('');
    setValue('');
    setTried(false);
    field.current?.focus();
  };
  return (
    <form onSubmit={submit} onKeyDown={(event) => event.key === 'Escape' && onClose?.()} className="space-y-1">
      <div className="flex items-center gap-2">
        <input
          ref={field}
          // biome-ignore lint/a11y/noAutofocus: the operator opened the fields
          autoFocus={isFocused}
          aria-label="New tag key"
          aria-invalid={(tried && fault !== null) || undefined}
          aria-describedby={`${id}-fault`}
          placeholder="key"
          list={`${id}-keys`}
          className={`${fieldClasses} h-8 max-sm:h-11 max-w-[40%] font-mono text-xs`}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <input
          aria-label="New tag value"
          placeholder="value"
          list={`${id}-values`}
          className={`${fieldClasses} h-8 max-sm:h-11`}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          disabled={split !== -1}
          value={split === -1 ? value : tagValue}
          onChange={(event) => setValue(event.target.value)}
        />
        <Button type="submit" icon={<Plus aria-hidden="true" className="size-4" />} disabled={key === ''}>
          Add
        </Button>
      </div>
      <p id={`${id}-fault`} className="text-bad text-xs empty:hidden">
        {tried && key !== '' && fault}
      </p>
      <datalist id={`${id}-keys`}>
        {keys.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <datalist id={`${id}-values`}>
        {values(name).map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </form>
  );
}
