import type { Assignment } from '@muster/protocol/http';
import { parseSelector } from '@muster/protocol/selector';
import type { AssignmentBody } from '../../api/assignments.ts';
import { type ParameterTexts, textsOf } from './parameters.ts';

/** The form of an assignment, but for its parameters (parameters.ts). Pure. */

export interface AssignmentFields {
  readonly name: string;
  readonly description: string;
  readonly modules: readonly string[];
  readonly selector: string;
  readonly mode: Assignment['mode'];
  readonly windowOnly: boolean;
  readonly texts: ParameterTexts;
}

export const nothingYet: AssignmentFields = {
  ...{ name: '', description: '', modules: [], selector: '', mode: 'enforce', windowOnly: false, texts: {} },
};

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

/** What the orchestrator would refuse, said at its field. */
export function faultsOf({ name, modules, selector, description }: AssignmentFields): FieldFaults {
  const faults: FieldFaults = {};
  if (name.trim() === '') faults.name = 'Give it a name.';
  else if (name.length > 128) faults.name = 'A name is up to 128 characters.';
  if (modules.length === 0) faults.modules = 'Add a module.';
  const parsed = parseSelector(selector);
  if (selector.trim() === '') faults.selector = 'Say which agents: an empty selector matches none.';
  else if (!parsed.ok) faults.selector = parsed.fault.message;
  if (description.length > 1024) faults.description = 'A description is up to 1024 characters.';
  return faults;
}

type Parameters = Record<string, Record<string, never>>;

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * What a changed form asks for: only what differs from what it began with, so that what somebody else has changed
 * meanwhile stays. Null when nothing does.
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
