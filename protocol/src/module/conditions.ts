import type { Conditions } from './document.ts';

/** The properties of the agent for which modules are resolved. */
export interface AgentFacts {
  /** Null until the first approval. */
  readonly name: string | null;
  readonly node_id: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

const tagPrefix = 'tag.';

/** Ignores inherited properties, because an agent may report an attribute named `constructor`. */
export const own = (values: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(values, key) ? values[key] : undefined;

export const factOf = (agent: AgentFacts, key: string): string | undefined =>
  key.startsWith(tagPrefix) ? own(agent.tags, key.slice(tagPrefix.length)) : own(agent.attributes, key);

/** Reports whether an agent has all of the values. Empty conditions match every agent. */
export const matches = (conditions: Conditions, agent: AgentFacts): boolean =>
  Object.entries(conditions).every(([key, value]) => factOf(agent, key) === value);

export const size = (conditions: Conditions): number => Object.keys(conditions).length;

/** Combines conditions. Returns undefined if no agent can satisfy all of them. */
export function together(...all: readonly Conditions[]): Conditions | undefined {
  const merged: Record<string, string> = {};
  for (const conditions of all) {
    for (const [key, value] of Object.entries(conditions)) {
      if (Object.hasOwn(merged, key) && merged[key] !== value) return undefined;
      merged[key] = value;
    }
  }
  return merged;
}

/** Reports whether every agent that satisfies `narrow` satisfies `wide` as well. */
export const implies = (narrow: Conditions, wide: Conditions): boolean =>
  Object.entries(wide).every(([key, value]) => Object.hasOwn(narrow, key) && narrow[key] === value);

/** Formats conditions for messages, such as `platform=linux distro=debian`. */
export const described = (conditions: Conditions): string =>
  Object.entries(conditions)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ') || 'any agent';
