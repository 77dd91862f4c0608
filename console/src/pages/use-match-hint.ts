import { useQuery } from '@tanstack/react-query';
import { matchesQuery } from '../api/agents.ts';
import { countedText } from '../parts/count.ts';
import { messageOf } from '../parts/states.tsx';

/**
 * Returns a selector field's hint: how many agents match now, or why the number is unknown.
 * @param until the end of the hint, which states how long further agents can start to match
 */
export function useMatchHint(selector: string, until: 'later' | 'while it is open'): string {
  const isEmpty = selector.trim() === '';
  const { data, error } = useQuery({ ...matchesQuery(selector), enabled: !isEmpty });
  if (isEmpty) return 'An empty selector matches no agent.';
  if (error) return messageOf(error);
  if (data === undefined) return 'Looking for agents…';
  return `Matches ${countedText(data.length, 'agent')} now, and any that match ${until}.`;
}
