import type { KindField } from '@muster/protocol/http';

const words = {
  text: 'text',
  boolean: 'true or false',
  list: 'list of strings',
  map: 'mapping of names to text',
  any: 'any value except null',
  ids: 'list of ids',
} as const;

/** Describes the allowed values of a field. */
export function kindFieldValues({ type, values, minimum, maximum }: KindField): string {
  if (type === 'integer') return `whole number, ${minimum} to ${maximum}`;
  return type === 'choice' ? (values ?? []).join(', ') : words[type];
}
