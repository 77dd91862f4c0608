import { ArrowDown, ArrowUp, GripVertical, X } from 'lucide-react';
import { type DragEvent, useState } from 'react';
import { IconButton } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Picker } from '../../parts/form/picker.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { moveItem } from './move-item.ts';

/** An ordered list of modules. Buttons and dragging change the order. */
export function ModuleOrderField({
  legend,
  modules,
  all,
  onChange,
  error,
}: {
  readonly legend: string;
  readonly modules: readonly string[];
  /** Names of all modules. */
  readonly all: readonly string[];
  readonly onChange: (modules: readonly string[]) => void;
  readonly error?: string | null;
}) {
  const [dragged, setDragged] = useState<number | null>(null);
  const [announcement, setAnnouncement] = useState('');
  const move = (from: number, to: number) => {
    if (to < 0 || to >= modules.length) return;
    onChange(moveItem(modules, from, to));
    setAnnouncement(`${modules[from]} is now number ${to + 1} of ${modules.length}`);
  };
  const over = (event: DragEvent, index: number) => {
    if (dragged === null) return;
    event.preventDefault();
    if (dragged === index) return;
    onChange(moveItem(modules, dragged, index));
    setDragged(index);
  };
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1 font-medium text-sm">{legend}</legend>
      {modules.length > 0 && (
        <ol className="mb-2 divide-y rounded-md border" aria-label={legend}>
          {modules.map((name, index) => (
            <li
              key={name}
              draggable
              onDragStart={() => setDragged(index)}
              onDragOver={(event) => over(event, index)}
              onDragEnd={() => setDragged(null)}
              className={classNames(
                'flex items-center gap-2 px-2 py-1 text-sm',
                dragged === index && 'bg-accent-soft',
                !all.includes(name) && 'text-bad',
              )}
            >
              <GripVertical aria-hidden="true" className="size-4 shrink-0 cursor-grab text-muted" />
              <span className="tabular w-5 text-right text-muted text-xs">{index + 1}</span>
              <span className="flex min-w-0 flex-1">
                <Line text={name} maxLength={64} />
                {!all.includes(name) && <span className="ml-2 shrink-0 text-xs">was removed</span>}
              </span>
              <IconButton
                small
                label={`Move ${visibleText(name)} up`}
                icon={<ArrowUp className="size-3.5" />}
                aria-disabled={index === 0}
                onClick={() => move(index, index - 1)}
              />
              <IconButton
                small
                label={`Move ${visibleText(name)} down`}
                icon={<ArrowDown className="size-3.5" />}
                aria-disabled={index === modules.length - 1}
                onClick={() => move(index, index + 1)}
              />
              <IconButton
                small
                label={`Remove ${visibleText(name)}`}
                icon={<X className="size-3.5" />}
                onClick={() => onChange(modules.toSpliced(index, 1))}
              />
            </li>
          ))}
        </ol>
      )}
      <Picker
        label="Add a module"
        hideLabel
        placeholder={modules.length === 0 ? 'Add a module: type part of its name' : 'Add another'}
        none={all.length === 0 ? 'No modules yet: create one first' : 'No matching module'}
        options={all.filter((name) => !modules.includes(name)).map((name) => ({ value: name, label: name }))}
        value=""
        onPick={(name) => onChange([...modules, name])}
        error={error}
      />
      <p role="status" className="sr-only">
        {announcement}
      </p>
    </fieldset>
  );
}
