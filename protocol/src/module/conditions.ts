import { compareVersions } from '../version-order.ts';
import { type AgentFacts, own } from './agent-facts.ts';
import type { Conditions, ValueSet } from './document.ts';
import { holds } from './expression/evaluate.ts';
import { parsePlain } from './expression/expression.ts';
import { Meter } from './expression/meter.ts';
import { ExpressionError } from './expression/values.ts';
import type { Scope } from './expression/variables.ts';

export type { AgentFacts };

const tagPrefix = 'tag.';
const attributePrefix = 'attr.';
export const parameterPrefix = 'param.';
/** Prefix of the key for a CEL condition, whose value is `true` or `false`. No other key contains it. */
export const celPrefix = '${{';

/** The values that conditions can use in addition to those of the agent. */
export type ConditionValues = Pick<Scope, 'parameters' | 'lookups' | 'meter'>;

/**
 * Returns the value of a condition's key as text.
 * @returns undefined if the agent or the module has no such value, or if a parameter is a list or a mapping
 * @throws ExpressionError if a CEL condition cannot be evaluated for a reason other than a missing value
 */
export function factOf(
  agent: AgentFacts,
  key: string,
  { parameters, lookups, meter }: ConditionValues = { parameters: new Map(), meter: new Meter() },
): string | undefined {
  if (key.startsWith(celPrefix)) {
    const parsed = parsePlain(key.slice(celPrefix.length));
    if ('message' in parsed) throw new ExpressionError(parsed.message);
    return String(
      holds(parsed, { agent, parameters, ...(lookups && { lookups }), each: undefined, index: undefined, meter }),
    );
  }
  if (key.startsWith(tagPrefix)) return own(agent.tags, key.slice(tagPrefix.length));
  if (key.startsWith(attributePrefix)) return own(agent.attributes, key.slice(attributePrefix.length));
  if (!key.startsWith(parameterPrefix)) return own(agent.attributes, key);
  const value = parameters.get(key.slice(parameterPrefix.length));
  return value === undefined || typeof value === 'object' ? undefined : String(value);
}

/**
 * Reports whether an agent satisfies all conditions. Empty conditions match every agent.
 * @throws ExpressionError as `factOf` does
 */
export const matches = (conditions: Conditions, agent: AgentFacts, values?: ConditionValues): boolean =>
  Object.entries(conditions).every(([key, set]) => accepts(set, factOf(agent, key, values)));

/** Reports whether a set contains a value. An absent value satisfies only `not`. */
function accepts(set: ValueSet, value: string | undefined): boolean {
  if (value === undefined) return !isPresenceRequired(set);
  return (set.in?.includes(value) ?? true) && !set.notIn?.includes(value) && isWithin(set, value);
}

const isPresenceRequired = (set: ValueSet): boolean =>
  set.in !== undefined || set.from !== undefined || set.below !== undefined;

const isWithin = ({ from, below }: ValueSet, value: string): boolean =>
  (from === undefined || compareVersions(value, from) >= 0) &&
  (below === undefined || compareVersions(value, below) < 0);

/** Returns the number of keys. */
export const size = (conditions: Conditions): number => Object.keys(conditions).length;

/** Combines conditions. Returns undefined if no agent can satisfy all of them. */
export function together(...all: readonly Conditions[]): Conditions | undefined {
  const merged: Record<string, ValueSet> = {};
  for (const conditions of all) {
    for (const [key, set] of Object.entries(conditions)) {
      const both: ValueSet | undefined = Object.hasOwn(merged, key) ? intersection(merged[key] as ValueSet, set) : set;
      if (both === undefined) return undefined;
      merged[key] = both;
    }
  }
  return merged;
}

/** Returns the values in both sets; undefined if there are none. */
function intersection(one: ValueSet, other: ValueSet): ValueSet | undefined {
  const [first, second] = one.in === undefined ? [other, one] : [one, other];
  if (first.in !== undefined) {
    const values = first.in.filter((value) => accepts(first, value) && accepts(second, value));
    return values.length === 0 ? undefined : { in: values };
  }
  const from = newest(one.from, other.from);
  const below = oldest(one.below, other.below);
  if (from !== undefined && below !== undefined && compareVersions(from, below) >= 0) return undefined;
  const notIn = [...new Set([...(one.notIn ?? []), ...(other.notIn ?? [])])];
  return {
    ...(notIn.length === 0 ? {} : { notIn }),
    ...(from === undefined ? {} : { from }),
    ...(below === undefined ? {} : { below }),
  };
}

const newest = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && compareVersions(a, b) < 0) ? b : a;
const oldest = (a: string | undefined, b: string | undefined): string | undefined =>
  a === undefined || (b !== undefined && compareVersions(a, b) > 0) ? b : a;

/**
 * Reports whether every agent that satisfies `narrow` also satisfies `wide`. If the result is uncertain, returns false.
 */
export const implies = (narrow: Conditions, wide: Conditions): boolean =>
  Object.entries(wide).every(([key, set]) => Object.hasOwn(narrow, key) && isSubset(narrow[key] as ValueSet, set));

function isSubset(narrow: ValueSet, wide: ValueSet): boolean {
  if (narrow.in !== undefined) return narrow.in.every((value) => !accepts(narrow, value) || accepts(wide, value));
  if (wide.in !== undefined) return false;
  if (wide.from !== undefined && (narrow.from === undefined || compareVersions(narrow.from, wide.from) < 0))
    return false;
  if (wide.below !== undefined && (narrow.below === undefined || compareVersions(narrow.below, wide.below) > 0))
    return false;
  return (wide.notIn ?? []).every((value) => narrow.notIn?.includes(value) || !isWithin(narrow, value));
}

/** Formats conditions for messages, such as `platform=linux distro in (debian, ubuntu) version>=12`. */
export const described = (conditions: Conditions): string =>
  Object.entries(conditions)
    .map(([key, set]) => describedSet(key, set))
    .join(' ') || 'any agent';

function describedSet(key: string, { in: values, notIn, from, below }: ValueSet): string {
  if (key.startsWith(celPrefix)) return key.slice(celPrefix.length);
  const list = (texts: readonly string[], one: string, many: string): string =>
    texts.length === 1 ? `${key}${one}${texts[0]}` : `${key} ${many} (${shortened(texts).join(', ')})`;
  return [
    ...(values === undefined ? [] : [list(values, '=', 'in')]),
    ...(notIn === undefined ? [] : [list(notIn, '!=', 'notin')]),
    ...(from === undefined ? [] : [`${key}>=${from}`]),
    ...(below === undefined ? [] : [`${key}<${below}`]),
  ].join(' ');
}

const shortened = (texts: readonly string[]): readonly string[] =>
  texts.length > 10 ? [...texts.slice(0, 10), '…'] : texts;
