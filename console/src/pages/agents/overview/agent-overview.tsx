import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { offAgentQuery } from '../../../api/reconcile.ts';
import { RepairDialog } from '../../reconcile/repair-dialog.tsx';
import { OperationsList } from '../agent-lists.tsx';
import { TagsPanel } from '../tags-editor.tsx';
import { LastMeasured, MachineFacts } from './agent-facts.tsx';
import { DesiredState } from './desired-state.tsx';
import { OutOfSync } from './out-of-sync.tsx';

/**
 * Shows what the agent should run and whether it is in sync, then its latest operations and facts about the machine.
 */
export function AgentOverview({ agent }: { readonly agent: Agent }) {
  const isApproved = agent.status === 'approved';
  const { data: off } = useQuery({ ...offAgentQuery(agent.node_id), enabled: isApproved });
  const [isFixing, setFixing] = useState(false);
  return (
    <div className="space-y-4">
      {off && <OutOfSync off={off} onFix={() => setFixing(true)} />}
      {off && isFixing && <RepairDialog agents={[off]} onClose={() => setFixing(false)} />}
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
    </div>
  );
}
