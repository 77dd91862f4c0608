import type { Field } from './kinds/field.ts';
import type { Trigger } from './kinds/kind.ts';
import { kinds, type ResourceType } from './kinds.ts';

export const templateDescription = 'Id of the template that contains the content';

export const triggerDescriptions: Readonly<Record<Trigger, string>> = {
  reload_on: 'Ids of resources; if one of them changes, the service is reloaded',
  restart_on: 'Ids of resources; if one of them changes, the service is restarted',
  rerun_on: 'Ids of resources; if one of them changes, the script runs again, or the machine reboots',
};

export interface KindField {
  readonly name: string;
  /** `ids` is a list of resource ids. */
  readonly type: Field['shape'] | 'ids';
  readonly required: boolean;
  /** Whether the field is part of the identity. */
  readonly identity: boolean;
  /** Value of an absent field; null if an absent field is not managed. */
  readonly default: string | null;
  /** The allowed values of a choice; null for other types. */
  readonly values: string[] | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** Whether the value is never shown, even if it contains no secret. */
  readonly sensitive: boolean;
  readonly description: string;
}

/** Returns all fields of a kind: required fields, optional fields, the template, and the triggers. */
export function kindFields(type: ResourceType): KindField[] {
  const kind = kinds[type];
  const names = [...Object.keys(kind.required), ...Object.keys(kind.optional)];
  // Which fields identify a resource may depend on the fields that are set.
  const identifying = new Set([
    ...kind.identifiedBy({}),
    ...kind.identifiedBy(Object.fromEntries(names.map((name) => [name, '']))),
  ]);
  const textField = (name: string): KindField => ({
    ...{ name, type: 'text', required: Object.hasOwn(kind.required, name), identity: identifying.has(name) },
    ...{ default: null, values: null, minimum: null, maximum: null, sensitive: kind.sensitive.includes(name) },
    description: '',
  });
  const declared = [...Object.entries(kind.required), ...Object.entries(kind.optional)].map(([name, field]) => ({
    ...textField(name),
    ...boundsOf(field),
    type: field.shape,
    default: field.whenAbsent ?? null,
    description: field.declared.meta()?.description ?? '',
  }));
  const template = kind.templated ? [{ ...textField('template'), description: templateDescription }] : [];
  const triggers = kind.triggers.map((name) => ({
    ...textField(name),
    type: 'ids' as const,
    description: triggerDescriptions[name],
  }));
  return [...declared, ...template, ...triggers];
}

/** Reads the bounds or choices from the schema of a field. */
function boundsOf({ shape, resolved }: Field): Partial<KindField> {
  const { minValue, maxValue, options } = resolved as unknown as {
    minValue: number;
    maxValue: number;
    options: string[];
  };
  if (shape === 'integer') return { minimum: minValue, maximum: maxValue };
  return shape === 'choice' ? { values: options } : {};
}
