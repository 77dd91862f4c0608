import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { offAgentQuery } from '../../../api/reconcile.ts';
import { OperationsList } from '../agent-lists.tsx';
import { TagsPanel } from '../tags-editor.tsx';
import { LastMeasured, MachineFacts } from './agent-facts.tsx';
import { DesiredState } from './desired-state.tsx';

/** Shows what the agent should run, then its latest operations and facts about the machine. */
export function AgentOverview({ agent }: { readonly agent: Agent }) {
  const isApproved = agent.status === 'approved';
  const { data: off } = useQuery({ ...offAgentQuery(agent.node_id), enabled: isApproved });
  return (
    <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(20rem,2fr)]">
      <div className="min-w-0 space-y-4">
        {isApproved && <DesiredState agent={agent} off={off} />}
        {isApproved && <OperationsList agent={agent} title="Latest operations" maxItems={5} />}
        <MachineFacts agent={agent} />
      </div>
      <div className="space-y-4">
        <TagsPanel agent={agent} />
        {isApproved && <LastMeasured agent={agent} />}
      </div>
    </div>
  );
}
