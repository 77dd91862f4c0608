import { hash } from 'node:crypto';
import {
  type Lookup,
  type LookupElement,
  type LookupValues,
  lookupList,
  type ModuleDocument,
} from '@muster/protocol/module';
import { listAgents } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';

/** The values of the lookups of some modules. */
export interface Lookups {
  /** By module and name. */
  readonly values: Readonly<Record<string, LookupValues>>;
  /** SHA-256 of each list in hexadecimal, by `module:name`, sorted. */
  readonly digests: Readonly<Record<string, string>>;
  /** Equal for equal values; empty if there are no lookups. */
  readonly key: string;
}

export const noLookups: Lookups = { values: {}, digests: {}, key: '' };

/** Returns the lookups of modules. */
export type LookUp = (documents: readonly ModuleDocument[]) => Promise<Lookups>;

interface List {
  readonly values: readonly LookupElement[];
  readonly digest: string;
}

/**
 * Returns a function that reads lookups. Agents whose modules have the same lookups share the lists, for which each
 * selector is evaluated once.
 */
export function createLookups(context: Context): LookUp {
  const known = new Map<string, Promise<Lookups>>();
  return (documents) => {
    const declaring = documents.filter(({ lookups }) => Object.keys(lookups).length > 0);
    if (declaring.length === 0) return Promise.resolve(noLookups);
    const key = JSON.stringify(declaring.map(({ name, lookups }) => [name, lookups]));
    const found = known.get(key) ?? readLookups(context, declaring);
    known.set(key, found);
    return found;
  };
}

async function readLookups(context: Context, declaring: readonly ModuleDocument[]): Promise<Lookups> {
  const wanted = Map.groupBy(
    declaring.flatMap(({ lookups }) => Object.values(lookups)),
    ({ selector }) => selector,
  );
  const lists = new Map<string, ReadonlyMap<string, List>>();
  for (const [selector, same] of wanted) {
    const agents = await listAgents(context, { status: 'approved', filter: selector });
    const listOf = (of: Lookup['of']): List => {
      const values = lookupList(of, agents);
      return { values, digest: hash('sha256', JSON.stringify(values), 'hex') };
    };
    const sources = new Map(same.map(({ of }) => [JSON.stringify(of), of]));
    lists.set(selector, new Map(Array.from(sources, ([key, of]) => [key, listOf(of)])));
  }
  // A map, because a module may be named `__proto__`.
  const values = new Map<string, LookupValues>();
  const digests: [string, string][] = [];
  for (const { name: module, lookups } of declaring) {
    const found = Object.entries(lookups).map(
      ([name, { selector, of }]) => [name, lists.get(selector)?.get(JSON.stringify(of)) as List] as const,
    );
    values.set(module, Object.fromEntries(found.map(([name, list]) => [name, list.values])));
    for (const [name, { digest }] of found) digests.push([`${module}:${name}`, digest]);
  }
  const sorted = Object.fromEntries(digests.sort(([one], [other]) => (one < other ? -1 : 1)));
  return { values: Object.fromEntries(values), digests: sorted, key: hash('sha256', JSON.stringify(sorted), 'hex') };
}

const recent = new WeakMap<object, { readonly readAt: number; readonly lookUp: LookUp }>();

/**
 * Returns a function that reads lookups, and reuses those that it read at most `maxAgeMs` ago for the same owner,
 * because each read includes all approved agents.
 * @param owner the owner of the shared lookups, such as a run
 */
export function recentLookups(context: Context, owner: object, maxAgeMs: number): LookUp {
  const now = context.now();
  const known = recent.get(owner);
  if (known !== undefined && now - known.readAt < maxAgeMs) return known.lookUp;
  const lookUp = createLookups(context);
  const shared: LookUp = async (documents) => {
    try {
      return await lookUp(documents);
    } catch (error) {
      recent.delete(owner);
      throw error;
    }
  };
  recent.set(owner, { readAt: now, lookUp: shared });
  return shared;
}
