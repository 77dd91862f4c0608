import { implies, size, together } from './conditions.ts';
import type { Conditions } from './document.ts';

/** A variant of a resource that may conflict with variants of other resources. */
export interface Contender {
  /** Index of the resource in the module. */
  readonly resource: number;
  /** Identity space and value. */
  readonly key: string;
  /** Conditions of the resource and of the variant. */
  readonly when: Conditions;
  readonly variant: Conditions;
  /** Conditions of the other variants of the same resource. */
  readonly rivals: readonly Conditions[];
}

// Limited, because the comparison is quadratic in the number of resources with the same identity, and each step reads
// all clauses. Conflicts beyond this limit are reported when the module is resolved.
const maximumSteps = 200_000;

/**
 * Finds pairs of resources in one module that have the same identity and may both apply to some agent. Each contender
 * is the later member of at most one pair.
 *
 * @param clauses `supports` of the module; an empty list is treated as one clause that every agent matches
 * @returns pairs of indices into `contenders`, the earlier first
 */
export function conflictingPairs(
  contenders: readonly Contender[],
  clauses: readonly Conditions[],
): { earlier: number; later: number }[] {
  const groups = new Map<string, number[]>();
  contenders.forEach(({ key }, index) => {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [index]);
    else group.push(index);
  });
  const pairs: { earlier: number; later: number }[] = [];
  let steps = 0;
  for (const group of groups.values()) {
    for (const [position, later] of group.entries()) {
      for (const earlier of group.slice(0, position)) {
        const [one, other] = [contenders[earlier] as Contender, contenders[later] as Contender];
        steps += (1 + clauses.length) * (1 + one.rivals.length + other.rivals.length);
        if (steps > maximumSteps) return pairs;
        if (canBothApply(one, other, clauses)) {
          pairs.push({ earlier, later });
          break;
        }
      }
    }
  }
  return pairs;
}

/**
 * Reports whether both resources may apply to the same agent.
 * @param clauses the agents in question; an empty list means every agent
 */
export function canBothApply(one: Contender, other: Contender, clauses: readonly Conditions[]): boolean {
  if (one.resource === other.resource) return false;
  const both = together(one.when, other.when);
  if (both === undefined) return false;
  return (clauses.length === 0 ? [{}] : clauses).some((clause) => {
    const agent = together(clause, both);
    return agent !== undefined && !isBeaten(one, agent) && !isBeaten(other, agent);
  });
}

/** Reports whether each of the given agents matches another variant with at least as many keys. */
const isBeaten = ({ variant, rivals }: Contender, agent: Conditions): boolean =>
  rivals.some((rival) => size(rival) >= size(variant) && implies(agent, rival));
