import type { Assignment } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { assignmentsQuery, createAssignment, updateAssignment } from '../../api/assignments.ts';
import { useFields } from '../../parts/form/use-fields.ts';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import { useStoredDraft } from '../use-stored-draft.ts';
import {
  type AssignmentFields,
  changesOf,
  type FieldFaults,
  faultsOf,
  fieldsFor,
  fieldsFrom,
  isFields,
  newAssignmentOf,
  type Parameters,
} from './assignment-fields.ts';
import { readParameters, textsOf } from './parameters.ts';
import { useParameterFields } from './parameters-form.tsx';

const noParameters = {};

function focusFirstFault(): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus());
}

const pickDescription = ({ description }: FieldFaults): FieldFaults =>
  description === undefined ? {} : { description };

/**
 * Returns the assignment form's fields, their errors, and functions to change and save them. Keeps the input until the
 * orchestrator accepts it.
 * @param base the assignment when the form opened; null for a new one
 * @param module name of the module that a new assignment initially contains and is named after; may be empty
 */
export function useAssignmentForm(base: Assignment | null, onDone: (assignment: Assignment) => void, module = '') {
  const [start] = useState(base);
  const [initial] = useState(() => (base === null ? fieldsFor(module) : fieldsFrom(base)));
  const [fields, change] = useFields<AssignmentFields>(initial);
  const [submitted, setSubmitted] = useState(false);
  const declared = useParameterFields(fields.modules, start?.parameters ?? noParameters);
  // Omits parameters whose module the operator removed from the list.
  const parameterFields = declared.fields.filter(({ module }) => fields.modules.includes(module));
  const { data: assignments } = useQuery(assignmentsQuery);
  const givenByOthers = useMemo(() => {
    const others = assignments?.filter(({ name }) => name !== start?.name) ?? [];
    return new Set(others.flatMap(({ parameters }) => Object.keys(textsOf(parameters))));
  }, [assignments, start]);
  const read = readParameters(parameterFields, fields.texts, (key) => fields.valuesOnly || givenByOthers.has(key));
  const faults = faultsOf(fields);
  if (fields.valuesOnly && 'parameters' in read && Object.keys(read.parameters).length === 0)
    faults.modules ??= 'Give a value to a parameter below.';
  const changed =
    start === null
      ? JSON.stringify(fields) !== JSON.stringify(initial)
      : 'faults' in read || changesOf(start, fields, read.parameters) !== null;
  useStoredDraft({
    name: start === null ? 'new assignment' : `assignment ${start.name}`,
    draft: JSON.stringify(fields) === JSON.stringify(initial) ? null : fields,
    isDraft: isFields,
    restore: change,
  });
  const { guard, allow } = useLeaveGuard(changed, 'Your changes are not saved.', true);
  const save = useMutation({
    mutationFn: async (parameters: Parameters) => {
      if (start === null) return await createAssignment(newAssignmentOf(fields, parameters));
      const body = changesOf(start, fields, parameters);
      return body === null ? start : await updateAssignment(start.name, body);
    },
    onSuccess: (assignment) => {
      allow();
      onDone(assignment);
    },
  });
  return {
    ...{ fields, change, save, guard },
    isNew: start === null,
    canSave: start === null || changed,
    /** Until the first attempt to save, reports only a description that is too long. */
    faults: submitted ? faults : pickDescription(faults),
    parameters: {
      fields: parameterFields,
      faults: submitted && 'faults' in read ? read.faults : noParameters,
      isPending: declared.isPending,
    },
    submit: () => {
      setSubmitted(true);
      if (Object.keys(faults).length > 0 || 'faults' in read) focusFirstFault();
      else save.mutate(read.parameters);
    },
  };
}
