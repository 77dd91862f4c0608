import { Checkbox } from '../../parts/form/field.tsx';

/** Asks whether the apply is bound to the plan. */
export const ExactChoice = ({
  isExact,
  onChange,
}: {
  readonly isExact: boolean;
  readonly onChange: (isExact: boolean) => void;
}) => (
  <Checkbox
    label="Apply exactly this plan"
    hint={
      isExact
        ? 'On an agent where anything has changed since the plan, nothing is applied.'
        : 'The changes are computed again. They may differ from this plan, removals included.'
    }
    checked={isExact}
    onChange={(event) => onChange(event.target.checked)}
  />
);
