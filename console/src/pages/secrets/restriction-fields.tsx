import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { countedText } from '../../parts/count.ts';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { Line } from '../../parts/text.tsx';
import { useMatchHint } from '../use-match-hint.ts';
import type { RestrictionDraft, RestrictionKind } from './secret-form.ts';

/** Input fields that select the agents that may use a secret. */
export function RestrictionFields({
  restriction,
  onChange,
}: {
  readonly restriction: RestrictionDraft;
  readonly onChange: (restriction: RestrictionDraft) => void;
}) {
  const { kind, agents, selector } = restriction;
  const change = (part: Partial<RestrictionDraft>) => onChange({ ...restriction, ...part });
  const vocabulary = useSelectorVocabulary();
  const withSelector = kind === 'selector' || kind === 'both';
  const hint = useMatchHint(withSelector ? selector : '', 'later');
  return (
    <fieldset className="space-y-3">
      <Select
        label="Allowed agents"
        value={kind}
        onChange={(event) => change({ kind: event.target.value as RestrictionKind })}
      >
        <option value="any">Any approved agent</option>
        <option value="agents">Only selected agents</option>
        <option value="selector">Only agents that match a selector</option>
        <option value="both">Selected agents that match a selector</option>
      </Select>
      {(kind === 'agents' || kind === 'both') && (
        <AgentChoice chosen={agents} onChange={(chosen) => change({ agents: chosen })} />
      )}
      {withSelector && (
        <SelectorInput
          label="Selector"
          value={selector}
          onChange={(text) => change({ selector: text })}
          vocabulary={vocabulary}
          hint={hint}
        />
      )}
    </fieldset>
  );
}

/** Maximum number of unselected agents to list. */
const maxOffered = 50;

function AgentChoice({
  chosen,
  onChange,
}: {
  readonly chosen: readonly string[];
  readonly onChange: (agents: readonly string[]) => void;
}) {
  const { data } = useQuery(agentsQuery);
  const [text, setText] = useState('');
  const options = useMemo(() => agentOptions(data ?? [], chosen, text), [data, chosen, text]);
  return (
    <div>
      <Input
        label="Agents"
        type="search"
        placeholder="Find by name, hostname, or ID"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') event.preventDefault();
        }}
        hint={
          chosen.length === 0
            ? 'Without selected agents, no agent can use the secret.'
            : `${countedText(chosen.length, 'agent')} selected.`
        }
      />
      <ul
        className="mt-2 max-h-40 space-y-1 overflow-y-auto rounded-md border p-2"
        aria-label="Available agents"
        tabIndex={-1}
      >
        {options.map(({ node_id, name, initial_hostname }) => (
          <li key={node_id}>
            <Checkbox
              label={<Line text={name ?? initial_hostname} maxLength={80} />}
              checked={chosen.includes(node_id)}
              onChange={(event) =>
                onChange(event.target.checked ? [...chosen, node_id] : chosen.filter((id) => id !== node_id))
              }
            />
          </li>
        ))}
        {options.length === 0 && <li className="text-muted text-sm">No matching approved agents.</li>}
      </ul>
    </div>
  );
}

type AgentOption = Pick<Agent, 'node_id' | 'name' | 'initial_hostname'>;

/** Returns the selected agents first, including removed ones, then the approved agents that match the text. */
function agentOptions(agents: readonly Agent[], chosen: readonly string[], text: string): readonly AgentOption[] {
  const byId = new Map(agents.map((agent) => [agent.node_id, agent]));
  const first = chosen.map((id) => byId.get(id) ?? { node_id: id, name: null, initial_hostname: id });
  const query = text.trim().toLowerCase();
  const others = agents.filter(
    ({ node_id, name, initial_hostname, status }) =>
      status === 'approved' &&
      !chosen.includes(node_id) &&
      `${name ?? ''} ${initial_hostname.slice(0, 256)} ${node_id}`.toLowerCase().includes(query),
  );
  return [...first, ...others.slice(0, maxOffered)];
}
