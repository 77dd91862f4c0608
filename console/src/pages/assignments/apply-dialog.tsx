import type { Assignment } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { runAssignment, runsQuery } from '../../api/runs.ts';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Select } from '../../parts/form/field.tsx';
import { visibleText } from '../../parts/text.tsx';
import { milliseconds, relativeTime, useNow } from '../../parts/time.tsx';

export function ApplyDialog({
  open,
  onOpenChange,
  assignment,
  count,
  onStarted,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly assignment: Assignment;
  readonly count: number | null;
  readonly onStarted: (run: string) => void;
}) {
  const now = useNow();
  const [plan, setPlan] = useState('');
  const { data } = useInfiniteQuery({ ...runsQuery({ assignment: assignment.name }), enabled: open });
  const plans = data?.pages.flat().filter(({ kind, status }) => kind === 'plan' && status !== 'running') ?? [];
  return (
    <FanOutDialog
      open={open}
      onOpenChange={onOpenChange}
      title={`Apply ${visibleText(assignment.name)}`}
      description="Applies all assignments of each agent, including this one."
      action={count === null ? 'Apply' : `Apply to ${count === 1 ? '1 agent' : `${count} agents`}`}
      count={count}
      onStart={async (options) => {
        const { run_id } = await runAssignment(assignment.name, 'apply', {
          ...options,
          ...(plan === '' ? {} : { plan_run_id: plan }),
        });
        onStarted(run_id);
      }}
    >
      <Select
        label="Changes to apply"
        hint={
          plan === ''
            ? 'Each agent determines its changes when it starts to apply.'
            : 'Each agent applies exactly its plan, or nothing if anything has changed since the plan.'
        }
        value={plan}
        onChange={(event) => setPlan(event.target.value)}
      >
        <option value="">Current changes</option>
        {plans.slice(0, 20).map(({ run_id, started_at, status }) => (
          <option key={run_id} value={run_id}>
            Plan of {relativeTime(milliseconds(started_at), now)} ({status}, …{run_id.slice(-8)})
          </option>
        ))}
      </Select>
    </FanOutDialog>
  );
}
