import { isName } from '@muster/protocol/identity';

/** Suggests unique names for agents that are pending approval, based on their hostnames. */

/** Returns a valid name similar to the hostname, or null if the hostname has no valid character. */
export function nameFrom(hostname: string): string | null {
  const name = [
    ...(hostname.slice(0, 1_000).normalize('NFC').split('.')[0] as string)
      .replace(/[^\p{L}\p{Nd}_-]+/gu, '-')
      .replace(/^[^\p{L}]+/u, ''),
  ]
    .slice(0, 60)
    .join('')
    .replace(/-+$/, '');
  return isName(name) ? name : null;
}

export interface UnnamedAgent {
  readonly node_id: string;
  /** The agent's name if it was approved before. The agent keeps this name. */
  readonly name: string | null;
  readonly initial_hostname: string;
}

/**
 * Returns suggested names by node id.
 * @param taken other agents' names
 */
export function namesFor(agents: readonly UnnamedAgent[], taken: ReadonlySet<string>): Map<string, string> {
  const used = new Set([...taken].map((name) => name.toLowerCase()));
  const names = new Map<string, string>();
  for (const { node_id, name, initial_hostname } of agents) {
    const proposed = name ?? nameFrom(initial_hostname) ?? `agent-${node_id.slice(0, 6)}`;
    let free = proposed;
    if (name === null) for (let number = 2; used.has(free.toLowerCase()); number++) free = `${proposed}-${number}`;
    used.add(free.toLowerCase());
    names.set(node_id, free);
  }
  return names;
}

/** Returns error messages for invalid names, by node id. */
export function faultsOf(names: ReadonlyMap<string, string>, taken: ReadonlySet<string>): Map<string, string> {
  const faults = new Map<string, string>();
  const first = new Map<string, string>();
  for (const [id, name] of names) {
    if (!isName(name)) faults.set(id, '1 to 64 letters, digits, - or _, starting with a letter');
    else if (taken.has(name)) faults.set(id, 'another agent has this name');
    else if (first.has(name)) faults.set(id, 'duplicate name');
    else first.set(name, id);
  }
  return faults;
}
