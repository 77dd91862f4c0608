import { type AgentFacts, described, implies, matches, size, together } from './conditions.ts';
import type { Conditions, Json } from './document.ts';

export type Choice =
  | { readonly kind: 'chosen'; readonly index: number }
  | { readonly kind: 'none' }
  /** Several matching variants have the largest number of keys. */
  | { readonly kind: 'tie'; readonly indices: readonly number[] };

/** Chooses the matching variant with the most keys. */
export function chooseVariant(
  variants: readonly Conditions[],
  agent: AgentFacts,
  parameters?: ReadonlyMap<string, Json>,
): Choice {
  let best = -1;
  let indices: number[] = [];
  variants.forEach((when, index) => {
    if (size(when) < best || !matches(when, agent, parameters)) return;
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

// Beyond this limit, errors in variants are reported when the module is resolved.
const maximumSteps = 50_000;

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
): VariantFault[] {
  const faults = twinFaults(variants, when, clauses);
  if (faults.length > 0 || variants.length * clauses.length > maximumSteps) return faults;
  for (const [clause, conditions] of clauses.entries()) {
    const base = together(conditions, when);
    if (base === undefined) continue;
    const fault = certainFor(variants, base, clause);
    if (fault !== undefined) faults.push(fault);
  }
  return faults;
}

/** Finds variants with the same keys that match the same agents, for which no variant with more keys is chosen. */
function twinFaults(variants: readonly Conditions[], when: Conditions, clauses: readonly Conditions[]): VariantFault[] {
  const faults: VariantFault[] = [];
  const groups = new Map<string, number[]>();
  let steps = 0;
  variants.forEach((conditions, index) => {
    const keys = JSON.stringify(Object.keys(conditions).sort());
    const group = groups.get(keys) ?? [];
    groups.set(keys, [...group, index]);
    for (const twin of group) {
      if (++steps > maximumSteps) return;
      const other = variants[twin] as Conditions;
      const both = together(other, conditions);
      if (both === undefined) continue;
      const isEqual = implies(other, conditions) && implies(conditions, other);
      if (!isEqual && !isTied(both, variants, [when], clauses)) continue;
      const matched = described(isEqual ? conditions : both);
      faults.push({ index, message: `ties with variant ${twin + 1}: both match ${matched}` });
      return;
    }
  });
  return faults;
}

/** Reports whether some of these agents are possible, and match no variant with more keys. */
function isTied(
  both: Conditions,
  variants: readonly Conditions[],
  limits: readonly Conditions[],
  clauses: readonly Conditions[],
): boolean {
  if (variants.length * clauses.length > maximumSteps) return false;
  return (clauses.length === 0 ? [{}] : clauses).some((clause) => {
    const agents = together(clause, ...limits, both);
    return agents !== undefined && !variants.some((rival) => size(rival) > size(both) && together(agents, rival));
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
  // A variant with more keys may match some of these agents, for which these two do not tie.
  if (first === undefined || second === undefined || possible > maxSize) return undefined;
  return { index: second, message: `ties with variant ${first + 1} for all ${agents}: add a key to one of them` };
}
