import type { OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { beyondQuery, runsToRepair } from '../../api/modules/unassigned-modules.ts';
import { startApply, startPlan } from '../../api/operations.ts';
import { runOnAgents } from '../../api/runs.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { atOnce, careful } from '../../parts/form/fan-out.ts';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Checkbox } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';

const description =
  'Applies the current assignments of each agent. Repairs drift, and also applies changes made to its modules since the last apply.';

/** Repairs one agent with an operation, or several agents with a run. Both can be planned first. */
export function RepairDialog({
  agents,
  onClose,
}: {
  readonly agents: readonly OffAgent[];
  readonly onClose: () => void;
}) {
  const [only] = agents;
  return only !== undefined && agents.length === 1 ? (
    <RepairOne agent={only} onClose={onClose} />
  ) : (
    <RepairMany agents={agents} onClose={onClose} />
  );
}

function RepairOne({ agent, onClose }: { readonly agent: OffAgent; readonly onClose: () => void }) {
  const { node_id, name, connected } = agent;
  const beyond = useQuery(beyondQuery([agent]));
  const navigate = useNavigate();
  const [busy, setBusy] = useState<'apply' | 'plan' | null>(null);
  const [error, setError] = useState<unknown>(null);
  const modules = beyond.data?.get(node_id) ?? [];
  const start = async (kind: 'apply' | 'plan') => {
    setBusy(kind);
    setError(null);
    try {
      const operation = await (kind === 'apply' ? startApply : startPlan)({ node_id, modules });
      void navigate({ to: '/operations/$operation', params: { operation: operation.operation_id } });
    } catch (thrown) {
      setError(thrown);
      setBusy(null);
    }
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Repair ${name ?? node_id}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            busy={busy === 'plan'}
            disabled={busy !== null || beyond.data === undefined}
            onClick={() => void start('plan')}
          >
            Plan first
          </Button>
          <Button
            look="primary"
            busy={busy === 'apply'}
            disabled={busy !== null || beyond.data === undefined}
            onClick={() => void start('apply')}
          >
            Apply
          </Button>
        </>
      }
    >
      <div className="space-y-3 text-sm">
        <p>
          This applies the current assignments of the agent. It repairs drift, and also applies changes made to its
          modules since the last apply.
        </p>
        {!connected && (
          <p className="text-warn">The agent is not connected. The operation is refused until it reconnects.</p>
        )}
        <Problem error={error ?? beyond.error} />
      </div>
    </Dialog>
  );
}

function RepairMany({ agents, onClose }: { readonly agents: readonly OffAgent[]; readonly onClose: () => void }) {
  const beyond = useQuery(beyondQuery(agents));
  const navigate = useNavigate();
  const [planFirst, setPlanFirst] = useState(false);
  const runs = useMemo(() => (beyond.data === undefined ? null : runsToRepair(beyond.data)), [beyond.data]);
  const away = agents.filter(({ connected }) => !connected).length;
  const verb = planFirst ? 'Plan' : 'Apply';
  return (
    <FanOutDialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Repair ${agents.length} agents`}
      description={description}
      action={`${verb} on ${agents.length} agents`}
      count={agents.length}
      ready={runs !== null}
      start={planFirst ? atOnce : careful}
      onStart={async (options) => {
        const started = [];
        for (const { node_ids, modules } of runs ?? [])
          started.push(await runOnAgents({ ...options, kind: planFirst ? 'plan' : 'apply', node_ids, modules }));
        const [first, ...others] = started;
        if (first === undefined) return;
        void (others.length === 0
          ? navigate({ to: '/runs/$run', params: { run: first.run_id } })
          : navigate({ to: '/runs' }));
      }}
    >
      <Checkbox
        label="Plan first"
        hint="Shows what an apply would change, grouped by agents with the same changes."
        checked={planFirst}
        onChange={(event) => setPlanFirst(event.target.checked)}
      />
      {away > 0 && (
        <p className="text-sm text-warn">{away === 1 ? '1 agent is' : `${away} agents are`} not connected.</p>
      )}
      {runs !== null && runs.length > 1 && (
        <p className="text-muted text-sm">
          This starts {runs.length} runs, because some agents have different modules without an assignment.
        </p>
      )}
      <Problem error={beyond.error} />
    </FanOutDialog>
  );
}
