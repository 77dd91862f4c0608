import type { Assignment } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useId, useMemo, useState } from 'react';
import { agentsQuery, useSelectorVocabulary } from '../../api/agents.ts';
import { createAssignment, updateAssignment } from '../../api/assignments.ts';
import { modulesQuery } from '../../api/modules.ts';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Checkbox, Input, TextArea } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Problem } from '../../parts/states.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import { type AssignmentFields, changesOf, emptyFields, faultsOf, fieldsFrom } from './assignment-fields.ts';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { matching } from './matching.ts';
import { ModuleOrderField } from './module-order.tsx';
import { readParameters } from './parameters.ts';
import { ParametersForm, useParameterFields } from './parameters-form.tsx';

const noParameters = {};

/** Creates or changes an assignment. Keeps its input until the orchestrator has accepted it. */
export function AssignmentForm({
  base,
  onDone,
  onCancel,
}: {
  /** The assignment when the form opened; null for a new one. */
  readonly base: Assignment | null;
  readonly onDone: (assignment: Assignment) => void;
  readonly onCancel: () => void;
}) {
  const group = useId();
  const [start] = useState(base);
  const [fields, setFields] = useState<AssignmentFields>(() => (base === null ? emptyFields : fieldsFrom(base)));
  const [submitted, setSubmitted] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const change = (part: Partial<AssignmentFields>) => setFields((before) => ({ ...before, ...part }));

  const modules = useQuery(modulesQuery);
  const all = useMemo(() => modules.data?.map(({ name }) => name) ?? [], [modules.data]);
  const declared = useParameterFields(fields.modules, start?.parameters ?? noParameters);
  // Drops parameters of modules that were removed from the list.
  const parameterFields = declared.fields.filter(({ module }) => fields.modules.includes(module));
  const parameters = readParameters(parameterFields, fields.texts);
  const faults = faultsOf(fields);
  const parameterFaults = 'faults' in parameters ? parameters.faults : noParameters;

  const agents = useQuery(agentsQuery);
  const vocabulary = useSelectorVocabulary();
  const selector = useDeferredValue(fields.selector);
  const matched = useMemo(() => matching(selector, agents.data ?? []), [selector, agents.data]);

  const changed =
    start === null
      ? JSON.stringify(fields) !== JSON.stringify(emptyFields)
      : 'faults' in parameters || changesOf(start, fields, parameters.parameters) !== null;
  const { guard, allow } = useLeaveGuard(changed, 'Your changes are not saved.', true);

  const save = async () => {
    setSubmitted(true);
    if (Object.keys(faults).length > 0 || 'faults' in parameters) {
      // Focuses the first field with an error.
      requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus());
      return;
    }
    setBusy(true);
    setError(null);
    try {
      if (start === null) {
        const { name, description, mode, windowOnly } = fields;
        const made = await createAssignment({
          ...{ name: name.trim(), modules: [...fields.modules], selector: fields.selector.trim(), mode },
          ...(description.trim() === '' ? {} : { description: description.trim() }),
          window_only: windowOnly,
          parameters: parameters.parameters,
        });
        allow();
        onDone(made);
      } else {
        const body = changesOf(start, fields, parameters.parameters);
        const done = body === null ? start : await updateAssignment(start.name, body);
        allow();
        onDone(done);
      }
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      className="grid gap-4 lg:grid-cols-2"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Panel title="Modules" className="self-start">
        <div className="space-y-4">
          {start === null && (
            <Input
              label="Name"
              hint="If several assignments match an agent, their modules run in the order of the assignment names."
              value={fields.name}
              error={submitted ? faults.name : null}
              onChange={(event) => change({ name: event.target.value })}
            />
          )}
          <ModuleOrderField
            modules={fields.modules}
            all={all}
            onChange={(list) => change({ modules: list })}
            error={submitted ? (faults.modules ?? null) : null}
          />
          <TextArea
            label="Description"
            rows={2}
            value={fields.description}
            error={faults.description}
            onChange={(event) => change({ description: event.target.value })}
          />
        </div>
      </Panel>
      <Panel title="Agents and mode" className="self-start">
        <div className="space-y-4">
          <div>
            <SelectorInput
              label="Selector"
              value={fields.selector}
              onChange={(text) => change({ selector: text })}
              vocabulary={vocabulary}
              error={submitted && fields.selector.trim() === '' ? faults.selector : null}
            />
            <p role="status" className="mt-2 text-sm">
              {agents.isPending || matched === null ? (
                <span className="text-muted">{matched === null ? 'The selector is incomplete.' : 'Counting…'}</span>
              ) : (
                <>
                  <span className="text-muted">Matches </span>
                  <span className="font-medium">{matched.length === 0 ? 'no agent' : matchText(matched)}</span>
                </>
              )}
            </p>
            {matched !== null && matched.length > 0 && (
              <div className="mt-2">
                <MatchedAgents agents={matched} />
              </div>
            )}
          </div>
          <fieldset>
            <legend className="mb-1 font-medium text-sm">Mode</legend>
            <div className="grid gap-2 sm:grid-cols-2">
              {(
                [
                  ['enforce', 'Enforce', 'Applies changes to machines'],
                  ['audit', 'Audit', 'Reports deviations, changes nothing'],
                ] as const
              ).map(([mode, label, hint]) => (
                <label
                  key={mode}
                  className={classNames(
                    'flex items-start gap-2 rounded-md border px-3 py-2',
                    fields.mode === mode ? 'border-accent bg-accent-soft' : 'hover:bg-hover',
                  )}
                >
                  <input
                    type="radio"
                    name={group}
                    className="mt-1 size-3.5 accent-[var(--accent)]"
                    checked={fields.mode === mode}
                    onChange={() => change({ mode })}
                  />
                  <span>
                    <span className="block font-medium text-sm">{label}</span>
                    <span className={classNames('block text-xs', fields.mode === mode ? 'text-text' : 'text-muted')}>
                      {hint}
                    </span>
                  </span>
                </label>
              ))}
            </div>
          </fieldset>
          <Checkbox
            label="Only in maintenance windows"
            hint="Outside a window that matches the agent, it is neither applied nor removed."
            checked={fields.windowOnly}
            onChange={(event) => change({ windowOnly: event.target.checked })}
          />
        </div>
      </Panel>
      {fields.modules.length > 0 && (
        <Panel title="Parameters" className="lg:col-span-2">
          <ParametersForm
            fields={parameterFields}
            texts={fields.texts}
            faults={submitted ? parameterFaults : noParameters}
            isPending={declared.isPending}
            onChange={(texts) => change({ texts })}
          />
        </Panel>
      )}
      <div className="sticky bottom-0 z-10 -mx-4 space-y-3 border-t bg-canvas px-4 py-3 sm:-mx-6 sm:px-6 lg:col-span-2">
        <Problem error={error} />
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onCancel}>Cancel</Button>
          <Button look="primary" type="submit" busy={busy} disabled={start !== null && !changed}>
            {start === null ? 'Create assignment' : 'Save changes'}
          </Button>
        </div>
      </div>
      {guard}
    </form>
  );
}
