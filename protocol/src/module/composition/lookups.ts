import { type ParsedSelector, parseSelector } from '../../selector.ts';
import { compareVersions } from '../../version-order.ts';
import { type AgentFacts, own } from '../agent-facts.ts';
import { type ConditionValues, matches } from '../conditions.ts';
import type { Json, Lookup } from '../document.ts';
import { reasonOrValue } from '../expression/values.ts';
import { allOf, type Check, maxLength, notEmpty } from '../kinds/format.ts';
import type { Path } from '../source/tree.ts';

/** The values of a module's lookups, by name. */
export type LookupValues = Readonly<Record<string, readonly string[]>>;

/** Limits the size of a desired state, which can repeat the values for each agent. */
const maximumLookupValues = 10_000;
export const maximumLookups = 16;

export const lookupSelectorCheck: Check = allOf(notEmpty, maxLength(4096), (text) => {
  const parsed: ParsedSelector = parseSelector(text);
  if (!parsed.ok) return `${parsed.fault.message} (column ${parsed.fault.column} of the selector)`;
  return parsed.selector.terms.length === 0 ? 'must select agents, for example "role=web"' : undefined;
});

const ofPattern = /^(agent\.(name|node_id)|attr\.[A-Za-z0-9_][A-Za-z0-9._/:-]*|tag\.[A-Za-z][A-Za-z0-9._/-]{0,62})$/;

export const lookupOfCheck: Check = allOf(maxLength(256), (text) =>
  ofPattern.test(text)
    ? undefined
    : 'must be agent.name, agent.node_id, or an attribute or a tag, for example attr.default_address',
);

/** Returns an agent's value for a lookup; undefined if the agent has none. */
export function lookedUp(of: Lookup['of'], agent: AgentFacts): string | undefined {
  if (of === 'agent.name') return agent.name ?? undefined;
  if (of === 'agent.node_id') return agent.node_id;
  const [root, key] = [of.slice(0, of.indexOf('.')), of.slice(of.indexOf('.') + 1)];
  return own(root === 'tag' ? agent.tags : agent.attributes, key);
}

/**
 * Sorts values and removes duplicates. Compares numbers within strings by value, so that `web-2` comes before `web-10`,
 * and everything else by UTF-16 code units.
 */
export const sortedValues = (values: Iterable<string>): string[] =>
  [...new Set(values)].sort((one, other) => compareVersions(one, other) || (one < other ? -1 : 1));

/** Shared by all agents. */
const noValues: readonly string[] = [];
const nothing = { values: new Map<string, Json>(), used: [], faults: [] };

/**
 * Returns the values of a module's lookups, with an error for each lookup that has none. `used` contains the lookups
 * whose conditions are true.
 */
export function lookupValues(
  declared: Readonly<Record<string, Lookup>>,
  given: LookupValues,
  agent: AgentFacts,
  conditionValues: ConditionValues,
): {
  values: ReadonlyMap<string, Json>;
  used: readonly string[];
  faults: { name: string; path: Path; message: string }[];
} {
  if (Object.keys(declared).length === 0) return nothing;
  const values = new Map<string, Json>();
  const used: string[] = [];
  const faults: { name: string; path: Path; message: string }[] = [];
  for (const [name, { when }] of Object.entries(declared)) {
    const holds = reasonOrValue(() => matches(when, agent, conditionValues));
    if (typeof holds === 'string') faults.push({ name, path: ['when'], message: holds });
    if (holds !== true) {
      values.set(name, noValues as Json);
      continue;
    }
    used.push(name);
    const found = Object.hasOwn(given, name) ? given[name] : undefined;
    if (found === undefined)
      faults.push({ name, path: [], message: `the lookup "${name}" has no value here: give it one under lookups` });
    else if (found.length > maximumLookupValues)
      faults.push({
        name,
        path: [],
        message: `the lookup "${name}" has ${found.length} values, and at most ${maximumLookupValues} are allowed: narrow its selector`,
      });
    // All agents share this object, so that it is converted for expressions only once.
    else values.set(name, found as Json);
  }
  return { values, used, faults };
}
