import type { Assignment } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { modulesQuery } from '../../api/modules/modules.ts';
import { Button } from '../../parts/button.tsx';
import { ChoiceCards } from '../../parts/form/choice-cards.tsx';
import { Checkbox, Input, TextArea } from '../../parts/form/field.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Problem } from '../../parts/states.tsx';
import { AgentSelectorField } from './agent-selector-field.tsx';
import type { AssignmentFields } from './assignment-fields.ts';
import { ModuleOrderField } from './module-order.tsx';
import { ParametersForm } from './parameters-form.tsx';
import { useAssignmentForm } from './use-assignment-form.ts';

const modes = [
  { value: 'enforce', label: 'Enforce', detail: 'Applies changes to machines' },
  { value: 'audit', label: 'Audit', detail: 'Reports drift and changes nothing' },
] as const;

const purposes = [
  { value: 'modules', label: 'Assign modules', detail: 'Adds them to the desired state, with values' },
  { value: 'values', label: 'Set parameters only', detail: 'For modules that other assignments add' },
] as const;

/** Creates or changes an assignment. Keeps its input until the orchestrator accepts it. */
export function AssignmentForm({
  base,
  module = '',
  onDone,
  onCancel,
}: {
  /** The assignment when the form opened; null for a new one. */
  readonly base: Assignment | null;
  /** A module that a new assignment contains initially. */
  readonly module?: string;
  readonly onDone: (assignment: Assignment) => void;
  readonly onCancel: () => void;
}) {
  const form = useAssignmentForm(base, onDone, module);
  const { fields, change, faults } = form;
  const { data: modules } = useQuery(modulesQuery);
  return (
    <form
      className="grid gap-4 lg:grid-cols-2"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        form.submit();
      }}
    >
      <Panel title="Assignment" className="self-start">
        <div className="space-y-4">
          {form.isNew && (
            <Input
              label="Name"
              hint="If several assignments match an agent, their modules run in the order of the assignment names."
              value={fields.name}
              error={faults.name}
              onChange={(event) => change({ name: event.target.value })}
            />
          )}
          <ChoiceCards
            legend="Purpose"
            choices={purposes}
            value={fields.valuesOnly ? 'values' : 'modules'}
            onChange={({ value }) => change({ valuesOnly: value === 'values' })}
          />
          <ModuleOrderField
            legend={fields.valuesOnly ? 'Modules that get values' : 'Modules, in order'}
            modules={fields.modules}
            all={modules?.map(({ name }) => name) ?? []}
            onChange={(list) => change({ modules: list })}
            error={faults.modules ?? null}
          />
          <TextArea
            label="Description (optional)"
            rows={2}
            value={fields.description}
            error={faults.description}
            onChange={(event) => change({ description: event.target.value })}
          />
        </div>
      </Panel>
      <Panel title={fields.valuesOnly ? 'Agents' : 'Agents and mode'} className="self-start">
        <div className="space-y-4">
          <AgentSelectorField
            selector={fields.selector}
            error={fields.selector.trim() === '' ? faults.selector : null}
            onChange={(selector) => change({ selector })}
          />
          {!fields.valuesOnly && <ModeFields mode={fields.mode} windowOnly={fields.windowOnly} onChange={change} />}
          <Input
            label="Precedence"
            hint="If several assignments set the same parameter, the one with the highest precedence wins."
            inputMode="numeric"
            value={fields.precedence}
            error={faults.precedence}
            onChange={(event) => change({ precedence: event.target.value })}
          />
        </div>
      </Panel>
      {fields.modules.length > 0 && (
        <Panel title="Parameters" className="lg:col-span-2">
          <ParametersForm {...form.parameters} texts={fields.texts} onChange={(texts) => change({ texts })} />
        </Panel>
      )}
      <div className="sticky bottom-0 z-10 -mx-4 space-y-3 border-t bg-canvas px-4 py-3 sm:-mx-6 sm:px-6 lg:col-span-2">
        <Problem error={form.save.error} />
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onCancel}>Cancel</Button>
          <Button look="primary" type="submit" busy={form.save.isPending} disabled={!form.canSave}>
            {form.isNew ? 'Create assignment' : 'Save changes'}
          </Button>
        </div>
      </div>
      {form.guard}
    </form>
  );
}

function ModeFields({
  mode,
  windowOnly,
  onChange,
}: Pick<AssignmentFields, 'mode' | 'windowOnly'> & { readonly onChange: (part: Partial<AssignmentFields>) => void }) {
  return (
    <>
      <ChoiceCards legend="Mode" choices={modes} value={mode} onChange={({ value }) => onChange({ mode: value })} />
      <Checkbox
        label="Only in maintenance windows"
        hint="Outside the maintenance windows of an agent, its resources are neither applied nor removed."
        checked={windowOnly}
        onChange={(event) => onChange({ windowOnly: event.target.checked })}
      />
    </>
  );
}
