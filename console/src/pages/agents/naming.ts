import { isName } from '@muster/protocol/identity';

/** What agents that wait for approval will be called: after their hostnames, each by a name of its own. Pure. */

/** A name from what a machine calls itself, as near as can be; null when nothing of it is left. */
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

export interface ToName {
  readonly node_id: string;
  /** An agent that was named once keeps its name. */
  readonly name: string | null;
  readonly initial_hostname: string;
}

/**
 * A name for each, by node id.
 * @param taken names of the agents that have one already
 */
export function namesFor(agents: readonly ToName[], taken: ReadonlySet<string>): Map<string, string> {
  const used = new Set([...taken].map((name) => name.toLowerCase()));
  const names = new Map<string, string>();
  for (const { node_id, name, initial_hostname } of agents) {
    const wanted = name ?? nameFrom(initial_hostname) ?? `agent-${node_id.slice(0, 6)}`;
    let free = wanted;
    if (name === null) for (let number = 2; used.has(free.toLowerCase()); number++) free = `${wanted}-${number}`;
    used.add(free.toLowerCase());
    names.set(node_id, free);
  }
  return names;
}

/** Why a name will not do, by node id. */
export function faultsOf(names: ReadonlyMap<string, string>, taken: ReadonlySet<string>): Map<string, string> {
  const faults = new Map<string, string>();
  const first = new Map<string, string>();
  for (const [id, name] of names) {
    if (!isName(name)) faults.set(id, '1 to 64 letters, digits, - and _, the first a letter');
    else if (taken.has(name)) faults.set(id, 'an agent has this name already');
    else if (first.has(name)) faults.set(id, 'two would have this name');
    else first.set(name, id);
  }
  return faults;
}
