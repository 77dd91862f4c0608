import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { agentQuery, agentsQuery } from '../../api/agents.ts';
import { assignmentsQuery } from '../../api/assignments.ts';
import { arrivalsQuery } from '../../api/enrollment.ts';
import { Dot, StateBadge } from '../../parts/badge.tsx';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Line } from '../../parts/text.tsx';
import { agentParam, displayName, stateOf, tones } from '../agents/agent-state.ts';
import { ApproveDialog } from '../agents/approve-dialog.tsx';
import { assignmentsOf, modulesOf } from '../agents/overview/assigned.ts';
import { TagsEditor } from '../agents/tags-editor.tsx';

/** Maximum number of machines to show with their tags. */
const maxDetailed = 1;

/** Waits for the machines that enroll with a token, and shows each of them with the next steps. */
export function Arrivals({
  token,
}: {
  readonly token: { readonly id: string; readonly created_at: number; readonly uses_left: number };
}) {
  const { data: ids = [] } = useQuery(arrivalsQuery(token));
  const isWaiting = ids.length < token.uses_left;
  return (
    <section aria-label="Machines" className="space-y-3">
      <div role="status" className="text-sm">
        {isWaiting && (
          <Dot tone="info" live>
            {ids.length === 0
              ? 'Waiting for the machine to connect…'
              : `${ids.length} of ${token.uses_left} machines have connected. Waiting for more…`}
          </Dot>
        )}
      </div>
      {ids.map((id) => (
        <Arrival key={id} id={id} isDetailed={ids.length <= maxDetailed} />
      ))}
    </section>
  );
}

function Arrival({ id, isDetailed }: { readonly id: string; readonly isDetailed: boolean }) {
  const { data: agent } = useQuery(agentQuery(id));
  if (agent === undefined) return null;
  const state = stateOf(agent);
  return (
    <div className="space-y-3 rounded-lg border px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-sm">
        <span className="flex min-w-0 items-center gap-2 font-medium">
          <Line text={displayName(agent)} maxLength={64} />
          <StateBadge tone={tones[state]}>{state}</StateBadge>
        </span>
        <code className="font-mono text-muted text-xs">{agent.initial_ip}</code>
        <span className="ml-auto flex gap-2">
          {agent.status === 'pending' && <Approve agent={agent} />}
          <Link
            to="/agents/$agent"
            params={{ agent: agentParam(agent) }}
            className={buttonClasses(agent.status === 'approved' ? 'primary' : 'plain')}
          >
            Open
          </Link>
        </span>
      </div>
      {agent.status === 'approved' && isDetailed && <NextSteps agent={agent} />}
    </div>
  );
}

function Approve({ agent }: { readonly agent: Agent }) {
  const [isOpen, setOpen] = useState(false);
  const { data: all } = useQuery({ ...agentsQuery, enabled: isOpen });
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        Approve…
      </Button>
      {isOpen && all !== undefined && <ApproveDialog agents={[agent]} all={all} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Offers to tag the machine, and lists the modules that are assigned to it because of its tags. */
function NextSteps({ agent }: { readonly agent: Agent }) {
  const { data: assignments } = useQuery(assignmentsQuery);
  const modules = assignments === undefined ? null : modulesOf(assignmentsOf(agent, assignments));
  return (
    <>
      <TagsEditor agent={agent} />
      {modules !== null && (
        <p className="text-sm">
          {modules.length === 0 ? (
            <>
              No assignment matches these tags.{' '}
              <Link to="/assignments/new" className="rounded text-accent hover:underline">
                Assign modules
              </Link>
            </>
          ) : (
            <>
              Its assignments include {modules.length === 1 ? '1 module' : `${modules.length} modules`}:{' '}
              <Line text={modules.join(', ')} />
            </>
          )}
        </p>
      )}
    </>
  );
}
