import { type ParsedSelector, parseSelector } from '../../selector.ts';
import { compareVersions } from '../../version-order.ts';
import { type AgentFacts, own } from '../agent-facts.ts';
import { type ConditionValues, matches } from '../conditions.ts';
import type { Json, Lookup } from '../document.ts';
import { reasonOrValue } from '../expression/values.ts';
import { allOf, type Check, maxLength, notEmpty } from '../kinds/format.ts';
import { quoted, suggestion } from '../nearest.ts';
import type { Path } from '../source/tree.ts';

/** The value of an agent: a text, or a mapping if the lookup has several keys. */
export type LookupElement = string | Readonly<Record<string, string>>;

/** The values of a module's lookups, by name. */
export type LookupValues = Readonly<Record<string, readonly LookupElement[]>>;

/** Limits the size of a desired state, which can repeat the values for each agent. */
const maximumLookupValues = 10_000;
export const maximumLookups = 16;
/** Limits the size of each value, as `maximumLookupValues` limits their number. */
export const maximumLookupKeys = 8;
/** Limits the keys and values of all mappings of a lookup together, in characters. */
const maximumLookupCharacters = 4 * 1024 * 1024;

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

/** Checks a key of a lookup. Expressions read it as `element.key`, where CEL reserves some words. */
export const lookupKeyCheck: Check = (text) => {
  if (
    /^(as|break|const|continue|else|false|for|function|if|import|in|let|loop|package|namespace|null|return|true|var|void|while)$/.test(
      text,
    )
  )
    return 'is a reserved word of expressions: choose another key';
  return /^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(text)
    ? undefined
    : 'is not a valid key: use letters, digits, and "_", and do not begin with a digit';
};

/**
 * Returns an agent's value for a lookup; undefined if the agent has none. A mapping is complete: if one of its values
 * is missing, the agent has no value. In a mapping, a value with control characters, which could add lines to a file,
 * counts as missing. A text keeps its control characters, because modules that are in use may depend on them.
 */
export function lookedUp(of: Lookup['of'], agent: AgentFacts): LookupElement | undefined {
  if (typeof of === 'string') return sourceOf(of, agent);
  const found = new Map<string, string>();
  for (const [key, source] of Object.entries(of)) {
    const value = sourceOf(source, agent);
    if (value === undefined || /[\p{Cc}\u2028\u2029]/u.test(value)) return undefined;
    found.set(key, value);
  }
  return Object.fromEntries(found);
}

function sourceOf(of: string, agent: AgentFacts): string | undefined {
  if (of === 'agent.name') return agent.name ?? undefined;
  if (of === 'agent.node_id') return agent.node_id;
  const [root, key] = [of.slice(0, of.indexOf('.')), of.slice(of.indexOf('.') + 1)];
  return own(root === 'tag' ? agent.tags : agent.attributes, key);
}

/**
 * Compares two texts. Compares equal texts without `compare`, because texts in mappings are often equal, and comparing
 * long texts as versions is slow.
 */
export const compareTexts = (one: string, other: string, compare = compareVersions): number =>
  one === other ? 0 : compare(one, other) || (one < other ? -1 : 1);

/**
 * Sorts values and removes duplicates. Compares numbers within strings by value, so that `web-2` comes before `web-10`,
 * and everything else by UTF-16 code units. Compares mappings key by key, in the order of `keys`.
 */
export function sortedValues<T extends LookupElement>(values: Iterable<T>, keys: readonly string[] = []): T[] {
  const textsOf = (value: LookupElement): readonly string[] =>
    typeof value === 'string' ? [value] : keys.map((key) => own(value, key) ?? '');
  const compare = (one: readonly string[], other: readonly string[]): number => {
    for (const [index, text] of one.entries()) {
      const order = compareTexts(text, other[index] ?? '');
      if (order !== 0) return order;
    }
    return 0;
  };
  return Array.from(distinctValues(values), ([json, value]) => ({ json, value, texts: textsOf(value) }))
    .sort((one, other) => compare(one.texts, other.texts) || (one.json < other.json ? -1 : 1))
    .map(({ value }) => value);
}

const distinctValues = <T extends LookupElement>(values: Iterable<T>): Map<string, T> =>
  new Map(Array.from(values, (value) => [JSON.stringify(value), value]));

/**
 * Returns the values of a lookup for these agents. A list that exceeds the limits is not sorted, and a list with too
 * many characters ends where it exceeds its limit: `lookupValues` refuses both.
 */
export function lookupList(of: Lookup['of'], agents: readonly AgentFacts[]): LookupElement[] {
  const found: LookupElement[] = [];
  let characters = 0;
  for (const agent of agents) {
    const value = lookedUp(of, agent);
    if (value === undefined) continue;
    found.push(value);
    characters += charactersOf(value);
    if (characters > maximumLookupCharacters) return found;
  }
  const distinct = [...distinctValues(found).values()];
  if (distinct.length > maximumLookupValues) return distinct;
  return sortedValues(distinct, typeof of === 'string' ? [] : Object.keys(of));
}

/**
 * Counts only mappings, because the limit did not exist when lookups of texts were added to modules that are in use.
 */
const charactersOf = (value: LookupElement): number =>
  typeof value === 'string' ? 0 : Object.entries(value).reduce((sum, [key, text]) => sum + key.length + text.length, 0);

/** Keyed by list, because all agents share the list. */
const measured = new WeakMap<readonly LookupElement[], boolean>();

function isTooLong(values: readonly LookupElement[]): boolean {
  const known = measured.get(values);
  if (known !== undefined) return known;
  const result = values.reduce((sum, value) => sum + charactersOf(value), 0) > maximumLookupCharacters;
  measured.set(values, result);
  return result;
}

/**
 * Returns, for each lookup, an error about its first value that `of` cannot yield. Values that come from agents need no
 * check.
 */
export function givenLookupFaults(
  declared: Readonly<Record<string, Lookup>>,
  given: LookupValues,
): { name: string; path: Path; message: string }[] {
  return Object.entries(declared).flatMap(([name, { of }]) => {
    const values = Object.hasOwn(given, name) ? (given[name] ?? []) : [];
    const index = values.findIndex((value) => elementFault(of, value) !== undefined);
    if (index === -1) return [];
    const message = `value ${index + 1} of the lookup "${name}" ${elementFault(of, values[index] as LookupElement)}`;
    return [{ name, path: ['of'], message }];
  });
}

function elementFault(of: Lookup['of'], value: LookupElement): string | undefined {
  if (typeof of === 'string') return typeof value === 'string' ? undefined : 'must be a text, because `of` is one';
  const keys = Object.keys(of);
  if (typeof value === 'string') return `must be a mapping with the keys of \`of\`: ${keys.join(', ')}`;
  const missing = keys.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) return `lacks the key ${quoted(missing)} of \`of\``;
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(of, key));
  return unknown === undefined
    ? undefined
    : `has the key ${quoted(unknown)}, which \`of\` does not have${suggestion(unknown, keys)}`;
}

/** Shared by all agents. */
const noValues: readonly LookupElement[] = [];
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
    else if (isTooLong(found))
      faults.push({
        name,
        path: [],
        message: `the lookup "${name}" has more than ${maximumLookupCharacters / 1024 ** 2} MiB of text: narrow its selector, or look up fewer values`,
      });
    // All agents share this object, so that it is converted for expressions only once.
    else values.set(name, found as Json);
  }
  return { values, used, faults };
}
