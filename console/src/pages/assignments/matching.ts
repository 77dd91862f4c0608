import type { Agent } from '@muster/protocol/http';
import { isEmpty, matchesSelector, parseSelector } from '@muster/protocol/selector';

/** Which agents an assignment's selector matches: approved ones, and none for an empty selector. Pure. */
export function matching(selector: string, agents: readonly Agent[]): readonly Agent[] | null {
  const parsed = parseSelector(selector);
  if (!parsed.ok) return null;
  if (isEmpty(parsed.selector)) return [];
  return agents.filter((agent) => agent.status === 'approved' && matchesSelector(parsed.selector, agent));
}
