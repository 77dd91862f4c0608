import { useId } from 'react';
import { classNames } from '../class-names.ts';

interface Choice {
  readonly value: string;
  readonly label: string;
  readonly detail: string;
}

/** Radio buttons shown as cards, for a few choices that need an explanation. */
export function ChoiceCards<C extends Choice>({
  legend,
  choices,
  value,
  onChange,
}: {
  readonly legend: string;
  readonly choices: readonly C[];
  /** Value of the selected card. If no card has this value, none is selected. */
  readonly value: string;
  readonly onChange: (choice: C) => void;
}) {
  const group = useId();
  return (
    <fieldset>
      <legend className="mb-1 font-medium text-sm">{legend}</legend>
      <div className="grid gap-2 sm:grid-cols-2">
        {choices.map((choice) => {
          const chosen = choice.value === value;
          return (
            <label
              key={choice.value}
              className={classNames(
                'flex items-start gap-2 rounded-md border px-3 py-2',
                chosen ? 'border-accent bg-accent-soft' : 'hover:bg-hover',
              )}
            >
              <input
                type="radio"
                name={group}
                className="mt-1 size-3.5"
                checked={chosen}
                onChange={() => onChange(choice)}
              />
              <span>
                <span className="block font-medium text-sm">{choice.label}</span>
                <span className={classNames('block text-xs', chosen ? 'text-text' : 'text-muted')}>
                  {choice.detail}
                </span>
              </span>
            </label>
          );
        })}
      </div>
    </fieldset>
  );
}
