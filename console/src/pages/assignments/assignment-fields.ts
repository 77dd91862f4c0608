import type { Assignment } from '@muster/protocol/http';
import { parseSelector } from '@muster/protocol/selector';
import { type AssignmentBody, modulesOf, type NewAssignment } from '../../api/assignments.ts';
import { isLike } from '../draft-shape.ts';
import { type ParameterTexts, textsOf } from './parameters.ts';

/** Fields in the assignment form, except module parameters (parameters.ts). */

export interface AssignmentFields {
  readonly name: string;
  readonly description: string;
  /** Whether the assignment only provides values for modules that other assignments assign. */
  readonly valuesOnly: boolean;
  readonly modules: readonly string[];
  readonly selector: string;
  readonly mode: Assignment['mode'];
  readonly windowOnly: boolean;
  /** A whole number. */
  readonly precedence: string;
  readonly texts: ParameterTexts;
}

export const emptyFields: AssignmentFields = {
  ...{ name: '', description: '', valuesOnly: false, modules: [], selector: '' },
  ...{ mode: 'enforce', windowOnly: false, precedence: '0', texts: {} },
};

/**
 * Returns the fields of a new assignment that assigns a module and has the module's name; empty fields without a
 * module.
 */
export const fieldsFor = (module: string): AssignmentFields =>
  module === '' ? emptyFields : { ...emptyFields, name: module, modules: [module] };

/** Reports whether a value from the browser's storage has the fields of the form. */
export const isFields = (value: unknown): value is AssignmentFields => isLike(emptyFields, value);

export const fieldsFrom = (assignment: Assignment): AssignmentFields => ({
  name: assignment.name,
  description: assignment.description ?? '',
  valuesOnly: assignment.modules.length === 0,
  modules: modulesOf(assignment),
  selector: assignment.selector,
  mode: assignment.mode,
  windowOnly: assignment.window_only,
  precedence: String(assignment.precedence),
  texts: textsOf(assignment.parameters),
});

export type FieldFaults = Partial<Record<'name' | 'modules' | 'selector' | 'description' | 'precedence', string>>;

/** Returns error messages by field for values that the orchestrator would refuse. */
export function faultsOf({ name, modules, selector, description, precedence }: AssignmentFields): FieldFaults {
  const faults: FieldFaults = {};
  if (name.trim() === '') faults.name = 'Enter a name.';
  else if (name.length > 128) faults.name = 'Use at most 128 characters.';
  if (modules.length === 0) faults.modules = 'Add a module.';
  const parsed = parseSelector(selector);
  if (selector.trim() === '') faults.selector = 'Enter a selector. An empty one matches no agent.';
  else if (!parsed.ok) faults.selector = parsed.fault.message;
  if (!/^\s*-?\d{1,7}\s*$/.test(precedence) || Math.abs(Number(precedence)) > 1_000_000)
    faults.precedence = 'Enter a whole number from -1000000 to 1000000.';
  if (description.length > 1024) faults.description = 'Use at most 1024 characters.';
  return faults;
}

export type Parameters = Record<string, Record<string, never>>;

/**
 * Returns the fields in the API's format. An assignment without modules is sent without audit mode and without the
 * restriction to maintenance windows.
 */
const sentOf = ({ valuesOnly, modules, selector, mode, windowOnly, precedence }: AssignmentFields) => ({
  modules: valuesOnly ? [] : [...modules],
  selector: selector.trim(),
  mode: valuesOnly ? ('enforce' as const) : mode,
  window_only: !valuesOnly && windowOnly,
  precedence: Number(precedence),
});

export const newAssignmentOf = (fields: AssignmentFields, parameters: Parameters): NewAssignment => ({
  name: fields.name.trim(),
  ...sentOf(fields),
  ...(fields.description.trim() === '' ? {} : { description: fields.description.trim() }),
  parameters,
});

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * Returns the update to send, or null if no field differs from the base. Contains only fields that differ, so that
 * concurrent changes to other fields are kept.
 */
export function changesOf(base: Assignment, fields: AssignmentFields, parameters: Parameters): AssignmentBody | null {
  const description = base.description ?? '';
  const sent = { ...sentOf(fields), description: fields.description, parameters };
  const before: typeof sent = { ...base, description, parameters: base.parameters as Parameters };
  const body: AssignmentBody = Object.fromEntries(
    Object.entries(sent).filter(([name, value]) => !isSame(before[name as keyof typeof sent], value)),
  );
  return Object.keys(body).length === 0 ? null : body;
}
