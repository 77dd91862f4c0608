import { isMapping } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { providerOf } from '../registry.ts';

/**
 * Checks whether a received body has the fields of its type, with values of the right kind. A newer or hostile
 * orchestrator may send anything. The provider itself checks the formats of the values. The protocol's schemas would
 * check more, but need 10 MB of memory, which is too much for agents. The compiler ensures that the provider's fields
 * match the protocol.
 */

const isText = (value: unknown): boolean => typeof value === 'string';
const kindsOfValue: Readonly<Record<string, { is(value: unknown): boolean; name: string }>> = {
  text: { is: isText, name: 'text' },
  integer: { is: Number.isSafeInteger, name: 'a whole number' },
  boolean: { is: (value) => typeof value === 'boolean', name: 'true or false' },
  list: { is: (value) => Array.isArray(value) && value.every(isText), name: 'a list of strings' },
  map: {
    is: (value) => isMapping(value) && Object.values(value).every(isText),
    name: 'a mapping of names to strings',
  },
  any: { is: () => true, name: 'a value' },
};

/** Returns a message about the errors in a body, without its values, or null if the body matches its type. */
export function bodyFault({ type, body }: Pick<ResolvedResource, 'type' | 'body'>): string | null {
  const shape = providerOf(type)?.fields;
  if (shape === undefined) return null;
  const values = body as Readonly<Record<string, unknown>>;
  const faults: string[] = [];
  for (const name of Object.keys(values))
    if (!Object.hasOwn(shape, name)) faults.push(`\`${nameOf(name)}\` is unknown`);
  for (const [name, entry] of Object.entries(shape)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const isOptional = entry.endsWith('?');
    if (value === undefined || value === null) {
      if (!isOptional) faults.push(`\`${name}\` is missing`);
      continue;
    }
    const expected = kindsOfValue[isOptional ? entry.slice(0, -1) : entry];
    if (expected?.is(value) !== true) faults.push(`\`${name}\` must be ${expected?.name}`);
  }
  // Any other value would be treated as "present".
  if ('ensure' in values && isText(values.ensure) && values.ensure !== 'present' && values.ensure !== 'absent')
    faults.push('`ensure` must be present or absent');
  if (faults.length === 0) return null;
  const more = faults.length > 5 ? `; and ${faults.length - 5} more` : '';
  return `the orchestrator sent a ${type} that this agent does not understand: ${faults.slice(0, 5).join('; ')}${more}. If the agent is older than the orchestrator, update it.`;
}

const nameOf = (name: string): string => JSON.stringify(name.slice(0, 64).toWellFormed()).slice(1, -1);
