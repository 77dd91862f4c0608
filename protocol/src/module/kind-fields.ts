import type { Field } from './kinds/field.ts';
import type { Trigger } from './kinds/kind.ts';
import { kinds, type ResourceType } from './kinds.ts';

export const templateDescription = 'Id of the template of the content';

export const triggerDescriptions: Readonly<Record<Trigger, string>> = {
  reload_on: 'Reloaded after any of these resources changed',
  restart_on: 'Restarted after any of these resources changed',
  rerun_on: 'Run again after any of these resources changed',
};

/** A field of a kind, described for people. */
export interface KindField {
  readonly name: string;
  /** `ids`: a list of ids of resources. */
  readonly type: Field['shape'] | 'ids';
  readonly required: boolean;
  /** True if the field is a part of the identity. */
  readonly identity: boolean;
  /** Default of an absent field; null: an absent field is not managed. */
  readonly default: string | null;
  /** The values of a choice; null: any value of the type. */
  readonly values: string[] | null;
  /** Bounds of an integer. */
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** True if the value is never shown, even if it contains no secret. */
  readonly sensitive: boolean;
  readonly description: string;
}

/** Every field of a kind: required ones first, then optional ones, the template, and triggers. */
export function kindFields(type: ResourceType): KindField[] {
  const kind = kinds[type];
  const names = [...Object.keys(kind.required), ...Object.keys(kind.optional)];
  // The fields that identify a resource may depend on which are given.
  const identifying = new Set([
    ...kind.identifiedBy({}),
    ...kind.identifiedBy(Object.fromEntries(names.map((name) => [name, '']))),
  ]);
  const plain = (name: string): KindField => ({
    ...{ name, type: 'text', required: Object.hasOwn(kind.required, name), identity: identifying.has(name) },
    ...{ default: null, values: null, minimum: null, maximum: null, sensitive: kind.sensitive.includes(name) },
    description: '',
  });
  const declared = [...Object.entries(kind.required), ...Object.entries(kind.optional)].map(([name, field]) => ({
    ...plain(name),
    ...boundsOf(field),
    type: field.shape,
    default: field.whenAbsent ?? null,
    description: field.declared.meta()?.description ?? '',
  }));
  const template = kind.templated ? [{ ...plain('template'), description: templateDescription }] : [];
  const triggers = kind.triggers.map((name) => ({
    ...plain(name),
    type: 'ids' as const,
    description: triggerDescriptions[name],
  }));
  return [...declared, ...template, ...triggers];
}

/** The bounds and choices in the schema of a field. */
function boundsOf({ shape, resolved }: Field): Partial<KindField> {
  const { minValue, maxValue, options } = resolved as unknown as {
    minValue: number;
    maxValue: number;
    options: string[];
  };
  if (shape === 'integer') return { minimum: minValue, maximum: maxValue };
  return shape === 'choice' ? { values: options } : {};
}
