import type { OffAgent } from '@muster/protocol/http';
import { useState } from 'react';
import { loadUnassignedModules, runsToRepair } from '../../api/modules/unassigned-modules.ts';
import { countedText } from '../../parts/count.ts';
import { ApplyAgentDialog } from '../apply/apply-agent-dialog.tsx';
import { ApplyRunDialog } from '../apply/apply-run-dialog.tsx';

/**
 * Brings agents back to their desired state: one agent with an operation, several with a run. Keeps modules that were
 * applied without an assignment.
 */
export function RepairDialog({
  agents,
  onClose,
}: {
  readonly agents: readonly OffAgent[];
  readonly onClose: () => void;
}) {
  // The agents when the dialog opened. The list changes while they are repaired.
  const [targets] = useState(agents);
  const [first] = targets;
  if (first === undefined) return null;
  if (targets.length === 1)
    return (
      <ApplyAgentDialog
        agent={agents.find(({ node_id }) => node_id === first.node_id) ?? first}
        title={`Apply to ${first.name ?? first.node_id}`}
        loadModules={async () => (await loadUnassignedModules([first])).get(first.node_id) ?? []}
        onClose={onClose}
      />
    );
  return (
    <ApplyRunDialog
      title={`Apply to ${countedText(targets.length, 'agent')}`}
      description="Applies the assignments of each agent. This repairs drift, and applies changes to its modules."
      loadSubjects={async () =>
        runsToRepair(await loadUnassignedModules(targets)).map((run) => ({ kind: 'agents', ...run }))
      }
      onClose={onClose}
    />
  );
}
