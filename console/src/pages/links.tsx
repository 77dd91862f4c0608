import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useAgentName } from '../api/agents.ts';
import { useOperatorNames } from '../api/operators.ts';
import { runsQuery } from '../api/runs.ts';
import { linkClasses } from '../parts/class-names.ts';
import { Line } from '../parts/text.tsx';

/** Links to the pages of agents, operations, runs, modules, and assignments. */

/** Returns the text that identifies an agent: its name, or a description if it was removed or is still loading. */
export const agentWords = (name: string | null | undefined): string => name ?? (name === null ? 'removed agent' : '…');

export function AgentLink({ id, name }: { readonly id: string; readonly name?: string | null }) {
  const known = useAgentName(id);
  const called = name ?? known;
  if (called === null)
    return (
      <span className="text-muted" title={id}>
        {agentWords(called)}
      </span>
    );
  return (
    <Link to="/agents/$agent" params={{ agent: id }} className={linkClasses}>
      <Line text={agentWords(called)} maxLength={64} />
    </Link>
  );
}

/** An agent's name without a link, for rows that link elsewhere. */
export function AgentName({ id }: { readonly id: string }) {
  const name = useAgentName(id);
  const words = <Line text={agentWords(name)} maxLength={64} />;
  return name === null ? <span className="flex min-w-0 font-normal text-muted">{words}</span> : words;
}

export function OperationLink({ id, children }: { readonly id: string; readonly children?: ReactNode }) {
  return (
    <Link to="/operations/$operation" params={{ operation: id }} className={linkClasses}>
      {children ?? <code className="font-mono text-xs">…{id.slice(-8)}</code>}
    </Link>
  );
}

export function RunLink({ id, children }: { readonly id: string; readonly children?: ReactNode }) {
  return (
    <Link to="/runs/$run" params={{ run: id }} className={linkClasses}>
      {children ?? <code className="font-mono text-xs">…{id.slice(-8)}</code>}
    </Link>
  );
}

/**
 * A link to a run, labeled with what the run does, such as `Apply of web`. Only recent runs have this label, because
 * the API has no short response for a single run.
 */
export function NamedRunLink({ id, kind }: { readonly id: string; readonly kind: 'apply' | 'plan' }) {
  const { data } = useInfiniteQuery(runsQuery());
  const run = data?.pages.flat().find(({ run_id }) => run_id === id);
  const verb = kind === 'plan' ? 'Plan' : 'Apply';
  return (
    <Link to="/runs/$run" params={{ run: id }} className={linkClasses}>
      <Line
        text={run === undefined ? `${verb} run` : `${verb} of ${run.assignment ?? 'selected agents'}`}
        maxLength={80}
      />
    </Link>
  );
}

/** A link to a list, for breadcrumbs. */
export function ListLink({
  to,
  children,
}: {
  readonly to:
    | '/agents'
    | '/assignments'
    | '/kinds'
    | '/modules'
    | '/operations'
    | '/runs'
    | '/out-of-sync'
    | '/terminals';
  readonly children: ReactNode;
}) {
  return (
    <Link to={to} className={linkClasses}>
      {children}
    </Link>
  );
}

export function ModuleLinks({ modules }: { readonly modules: readonly string[] }) {
  if (modules.length === 0) return <span className="text-muted">assigned modules</span>;
  return (
    <span className="flex min-w-0 flex-wrap gap-x-3">
      {modules.map((module) => (
        <Link key={module} to="/modules/$module" params={{ module }} className={linkClasses}>
          <Line text={module} maxLength={64} />
        </Link>
      ))}
    </span>
  );
}

export function AssignmentLink({ name }: { readonly name: string }) {
  return (
    <Link to="/assignments/$assignment" params={{ assignment: name }} className={linkClasses}>
      <Line text={name} maxLength={64} />
    </Link>
  );
}

/** An operator's name. Not a link, because operators have no pages. */
export function OperatorName({ id }: { readonly id: string }) {
  const names = useOperatorNames();
  // Shows the first characters of the id until names are loaded. For an action that the configuration caused, shows a
  // word instead of the id.
  return <Line text={names.get(id) ?? (id.length === 32 ? `${id.slice(0, 8)}…` : id)} maxLength={64} />;
}
