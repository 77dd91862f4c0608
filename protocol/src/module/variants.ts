import { type AgentFacts, type ConditionValues, described, implies, matches, size, together } from './conditions.ts';
import type { Conditions } from './document.ts';

export type Choice =
  | { readonly kind: 'chosen'; readonly index: number }
  | { readonly kind: 'none' }
  /** Several matching variants have the largest number of keys. */
  | { readonly kind: 'tie'; readonly indices: readonly number[] };

/**
 * Chooses the matching variant with the most keys.
 * @throws ExpressionError as `matches` does
 */
export function chooseVariant(variants: readonly Conditions[], agent: AgentFacts, values?: ConditionValues): Choice {
  let best = -1;
  let indices: number[] = [];
  variants.forEach((when, index) => {
    if (size(when) < best || !matches(when, agent, values)) return;
    if (size(when) > best) {
      best = size(when);
      indices = [];
    }
    indices.push(index);
  });
  if (indices.length === 0) return { kind: 'none' };
  return indices.length === 1 ? { kind: 'chosen', index: indices[0] as number } : { kind: 'tie', indices };
}

export interface VariantFault {
  /** Index of the variant; null for all variants. */
  readonly index: number | null;
  readonly message: string;
}

/**
 * Remaining work budget for checking the variants of a module, in comparisons of two conditions with few values. If
 * none remains, errors in variants are reported when the module is resolved.
 */
export interface VariantBudget {
  steps: number;
}

/** Returns a budget for about 100 ms of work. */
export const newVariantBudget = (): VariantBudget => ({ steps: 200_000 });

/** @returns whether work remains */
function spend(budget: VariantBudget, steps: number): boolean {
  budget.steps -= steps;
  return budget.steps >= 0;
}

/** Returns the number of values in conditions, which determines the cost of a comparison. */
const weight = (conditions: Conditions): number =>
  Object.values(conditions).reduce((sum, set) => sum + (set.in?.length ?? 0) + (set.notIn?.length ?? 0), 1);

/** Returns the cost of a comparison, which searches one set for each value of the other. */
const costOf = (one: Conditions, other: Conditions): number => 1 + (weight(one) * weight(other)) / 100;

/**
 * Finds errors in variants that do not depend on the agent: two variants that always tie, and clauses without a variant
 * for any of their agents.
 *
 * @param variants `when` of each variant
 * @param when `when` of the resource, which limits the agents of all variants
 * @param clauses `supports` of the module
 */
export function certainVariantFaults(
  variants: readonly Conditions[],
  when: Conditions,
  clauses: readonly Conditions[],
  budget: VariantBudget,
): VariantFault[] {
  const faults = tiedVariantFaults(variants, when, clauses, budget);
  if (faults.length > 0) return faults;
  for (const [clause, conditions] of clauses.entries()) {
    const base = together(conditions, when);
    if (base === undefined) continue;
    const cost = variants.reduce((sum, variant) => sum + costOf(base, variant), 0);
    if (!spend(budget, cost)) return faults;
    const fault = certainFor(variants, base, clause);
    if (fault !== undefined) faults.push(fault);
  }
  return faults;
}

/**
 * Finds variants that have the same keys and match the same agents, where no variant with more keys takes precedence.
 */
export function tiedVariantFaults(
  variants: readonly Conditions[],
  when: Conditions,
  clauses: readonly Conditions[],
  budget: VariantBudget,
): VariantFault[] {
  const faults: VariantFault[] = [];
  const groups = new Map<string, number[]>();
  const bySize = Map.groupBy(variants, size);
  const rivalsOf = new Map(
    [...bySize.keys()].map((keys) => [keys, [...bySize].flatMap(([more, same]) => (more > keys ? same : []))]),
  );
  variants.forEach((conditions, index) => {
    const keys = JSON.stringify(Object.keys(conditions).sort());
    const group = groups.get(keys) ?? [];
    groups.set(keys, group);
    const rivals = rivalsOf.get(size(conditions)) ?? [];
    for (const twin of group) {
      const other = variants[twin] as Conditions;
      if (!spend(budget, costOf(other, conditions))) return;
      const both = together(other, conditions);
      if (both === undefined) continue;
      const isEqual = implies(other, conditions) && implies(conditions, other);
      if (!isEqual && !isTied(both, rivals, when, clauses, budget)) continue;
      const matched = described(isEqual ? conditions : both);
      faults.push({ index, message: `ties with variant ${twin + 1}: both match ${matched}` });
      break;
    }
    group.push(index);
  });
  return faults;
}

/**
 * Reports whether some of these agents are possible and match no rival. Returns false if the budget is used up first.
 * @param rivals variants with more keys
 */
function isTied(
  both: Conditions,
  rivals: readonly Conditions[],
  when: Conditions,
  clauses: readonly Conditions[],
  budget: VariantBudget,
): boolean {
  return (clauses.length === 0 ? [{}] : clauses).some((clause) => {
    if (!spend(budget, costOf(clause, both))) return false;
    const agents = together(clause, when, both);
    if (agents === undefined) return false;
    return !rivals.some((rival) => !spend(budget, costOf(agents, rival)) || together(agents, rival) !== undefined);
  });
}

function certainFor(variants: readonly Conditions[], base: Conditions, clause: number): VariantFault | undefined {
  let certain: number[] = [];
  let maxSize = -1;
  let possible = -1;
  variants.forEach((conditions, index) => {
    if (implies(base, conditions)) {
      if (size(conditions) > maxSize) {
        maxSize = size(conditions);
        certain = [];
      }
      if (size(conditions) === maxSize) certain.push(index);
    }
    if (together(base, conditions) !== undefined) possible = Math.max(possible, size(conditions));
  });
  const agents = `agents of supports clause ${clause + 1} (${described(base)})`;
  if (possible === -1) return { index: null, message: `no variant can match ${agents}: add one, or narrow the clause` };
  const [first, second] = certain;
  // A more specific variant may match some of these agents. For those agents, the tie does not matter.
  if (first === undefined || second === undefined || possible > maxSize) return undefined;
  return { index: second, message: `ties with variant ${first + 1} for all ${agents}: add a key to one of them` };
}
