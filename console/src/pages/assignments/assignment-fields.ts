import type { Assignment } from '@muster/protocol/http';
import { parseSelector } from '@muster/protocol/selector';
import type { AssignmentBody, NewAssignment } from '../../api/assignments.ts';
import { type ParameterTexts, textsOf } from './parameters.ts';

/** Fields in the assignment form, except module parameters (parameters.ts). */

export interface AssignmentFields {
  readonly name: string;
  readonly description: string;
  readonly modules: readonly string[];
  readonly selector: string;
  readonly mode: Assignment['mode'];
  readonly windowOnly: boolean;
  readonly texts: ParameterTexts;
}

export const emptyFields: AssignmentFields = {
  ...{ name: '', description: '', modules: [], selector: '', mode: 'enforce', windowOnly: false, texts: {} },
};

/** Reports whether a value from the browser's storage has the fields of the form. */
export const isFields = (value: unknown): value is AssignmentFields =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(emptyFields).every(([name, empty]) => {
    const field = (value as Record<string, unknown>)[name];
    return typeof field === typeof empty && field !== null && Array.isArray(field) === Array.isArray(empty);
  });

export const fieldsFrom = (assignment: Assignment): AssignmentFields => ({
  name: assignment.name,
  description: assignment.description ?? '',
  modules: assignment.modules,
  selector: assignment.selector,
  mode: assignment.mode,
  windowOnly: assignment.window_only,
  texts: textsOf(assignment.parameters),
});

export type FieldFaults = Partial<Record<'name' | 'modules' | 'selector' | 'description', string>>;

/** Returns error messages by field for values that the orchestrator would refuse. */
export function faultsOf({ name, modules, selector, description }: AssignmentFields): FieldFaults {
  const faults: FieldFaults = {};
  if (name.trim() === '') faults.name = 'Enter a name.';
  else if (name.length > 128) faults.name = 'Use at most 128 characters.';
  if (modules.length === 0) faults.modules = 'Add a module.';
  const parsed = parseSelector(selector);
  if (selector.trim() === '') faults.selector = 'Enter a selector. An empty one matches no agent.';
  else if (!parsed.ok) faults.selector = parsed.fault.message;
  if (description.length > 1024) faults.description = 'Use at most 1024 characters.';
  return faults;
}

export type Parameters = Record<string, Record<string, never>>;

export const newAssignmentOf = (
  { name, description, modules, selector, mode, windowOnly }: AssignmentFields,
  parameters: Parameters,
): NewAssignment => ({
  ...{ name: name.trim(), modules: [...modules], selector: selector.trim(), mode },
  ...(description.trim() === '' ? {} : { description: description.trim() }),
  window_only: windowOnly,
  parameters,
});

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * Returns the update to send, or null if no field differs from the base. Contains only fields that differ, so that
 * concurrent changes to other fields are kept.
 */
export function changesOf(base: Assignment, fields: AssignmentFields, parameters: Parameters): AssignmentBody | null {
  const before = fieldsFrom(base);
  const body: AssignmentBody = {
    ...(isSame(before.modules, fields.modules) ? {} : { modules: [...fields.modules] }),
    ...(before.selector === fields.selector ? {} : { selector: fields.selector }),
    ...(before.description === fields.description ? {} : { description: fields.description }),
    ...(before.mode === fields.mode ? {} : { mode: fields.mode }),
    ...(before.windowOnly === fields.windowOnly ? {} : { window_only: fields.windowOnly }),
    ...(isSame(base.parameters, parameters) ? {} : { parameters }),
  };
  return Object.keys(body).length === 0 ? null : body;
}
