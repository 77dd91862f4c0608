import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { byName, matching } from './matching.ts';

/** An assignment's selector, with the agents that match it now. */
export function AgentSelectorField({
  selector,
  error,
  onChange,
}: {
  readonly selector: string;
  readonly error: string | null | undefined;
  readonly onChange: (selector: string) => void;
}) {
  const agents = useQuery(agentsQuery);
  const vocabulary = useSelectorVocabulary();
  const deferred = useDeferredValue(selector);
  const matched = useMemo(
    () => matching(deferred, agents.data ?? [])?.toSorted(byName) ?? null,
    [deferred, agents.data],
  );
  return (
    <div>
      <SelectorInput label="Selector" value={selector} onChange={onChange} vocabulary={vocabulary} error={error} />
      <p role="status" className="mt-2 text-sm">
        {agents.isPending || matched === null ? (
          <span className="text-muted">{matched === null ? 'The selector is incomplete.' : 'Counting…'}</span>
        ) : (
          <>
            <span className="text-muted">Matches </span>
            <span className="font-medium">{matchText(matched)}</span>
          </>
        )}
      </p>
      {matched !== null && matched.length > 0 && (
        <div className="mt-2">
          <MatchedAgents agents={matched} />
        </div>
      )}
    </div>
  );
}
