import type { Agent } from '@muster/protocol/http';
import { isEmpty, matchesSelector, parseSelector } from '@muster/protocol/selector';
import { compareNames } from '../../parts/table/compare-names.ts';

/** Compares names in natural order: `web-9` before `web-10`. */
export const byName = (a: Agent, b: Agent): number => compareNames(a.name ?? '', b.name ?? '');

/** Reports whether a selector matches one of the agents. An empty selector matches none. */
export function matchesAny(selector: string, agents: readonly Agent[]): boolean {
  const parsed = parseSelector(selector);
  if (!parsed.ok || isEmpty(parsed.selector)) return false;
  return agents.some((agent) => matchesSelector(parsed.selector, agent));
}

/**
 * Returns the approved agents that match a selector, in the given order. An empty selector matches none. Returns null if
 * the selector is invalid.
 */
export function matching(selector: string, agents: readonly Agent[]): readonly Agent[] | null {
  const parsed = parseSelector(selector);
  if (!parsed.ok) return null;
  if (isEmpty(parsed.selector)) return [];
  return agents.filter((agent) => agent.status === 'approved' && matchesSelector(parsed.selector, agent));
}
