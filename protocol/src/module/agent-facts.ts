/** The properties of the agent for which modules are resolved. */
export interface AgentFacts {
  /** The agent's name; null until the first approval. */
  readonly name: string | null;
  readonly node_id: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
}

/** Ignores inherited properties, because an agent may report an attribute named `constructor`. */
export const own = (values: Readonly<Record<string, string>>, key: string): string | undefined =>
  Object.hasOwn(values, key) ? values[key] : undefined;
