import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { useFleetSync } from '../reconcile/use-fleet-sync.ts';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { withFindings } from './matched-states.ts';
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
  const sync = useFleetSync();
  const deferred = useDeferredValue(selector);
  const matched = useMemo(
    () => matching(deferred, agents.data ?? [])?.toSorted(byName) ?? null,
    [deferred, agents.data],
  );
  const listed = useMemo(() => withFindings(matched ?? [], sync), [matched, sync]);
  return (
    <div>
      <SelectorInput label="Selector" value={selector} onChange={onChange} vocabulary={vocabulary} error={error} />
      <p role="status" className="mt-2 text-sm">
        {selector.trim() === '' ? (
          <span className="text-muted">Type a selector, such as role=web. “all” matches every agent.</span>
        ) : agents.isPending || matched === null ? (
          <span className="text-muted">{matched === null ? 'The selector is incomplete.' : 'Counting…'}</span>
        ) : (
          <>
            <span className="text-muted">Matches </span>
            <span className="font-medium">{matchText(matched)}</span>
          </>
        )}
      </p>
      {listed.length > 0 && (
        <div className="mt-2">
          <MatchedAgents agents={listed} />
        </div>
      )}
    </div>
  );
}
