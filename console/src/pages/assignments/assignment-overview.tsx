import type { Assignment } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { type AssignmentWithMatches, modulesOf } from '../../api/assignments.ts';
import { runsQuery } from '../../api/runs.ts';
import { Callout } from '../../parts/callout.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Panel } from '../../parts/panel.tsx';
import { SkeletonRows } from '../../parts/states.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { ModuleLinks } from '../links.tsx';
import { AssignmentRuns } from './assignment-runs.tsx';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { textOf } from './parameters.ts';
import { useMatchedAgents } from './use-matched-agents.ts';

/** Shows an assignment's modules, agents, parameters, and latest runs. */
export function AssignmentOverview({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { modules, selector, description, parameters, precedence, matches } = assignment;
  const runs = useInfiniteQuery(runsQuery({ assignment: assignment.name }));
  const hasNoRuns = runs.data?.pages[0]?.length === 0;
  return (
    <div className="space-y-4">
      {hasNoRuns && (
        <Callout tone="info" title="No runs yet">
          Plan it first. A plan shows what an apply would change on each agent, and changes nothing.
        </Callout>
      )}
      <div className="grid gap-4 lg:grid-cols-[3fr_2fr]">
        <div className="min-w-0 space-y-4">
          <Panel title="Assignment">
            <div className="space-y-4">
              {description !== null && (
                <p>
                  <Text text={description} maxLength={400} />
                </p>
              )}
              <Facts
                facts={[
                  [
                    modules.length === 0 ? 'Only gives values to' : 'Modules, in order',
                    <ModuleLinks key="modules" modules={modulesOf(assignment)} />,
                  ],
                  [
                    'Selector',
                    <code key="selector" className="font-mono text-muted text-xs [overflow-wrap:anywhere]">
                      {selector === '' ? 'empty, matches no agent' : visibleText(selector)}
                    </code>,
                  ],
                  ...(precedence === 0 ? [] : [['Precedence', String(precedence)] as const]),
                ]}
              />
            </div>
          </Panel>
          {!hasNoRuns && <AssignmentRuns name={assignment.name} title="Last runs" maxRuns={5} />}
        </div>
        <MatchesPanel ids={matches} />
      </div>
      <ParameterTable parameters={parameters} />
    </div>
  );
}

function MatchesPanel({ ids }: { readonly ids: readonly string[] }) {
  const matched = useMatchedAgents(ids);
  return (
    <Panel title={matched === undefined ? 'Matches' : `Matches ${matchText(matched)}`} className="self-start">
      {matched === undefined ? (
        <SkeletonRows rows={2} />
      ) : matched.length === 0 ? (
        <p className="text-muted text-sm">No approved agent matches now. Change the selector, or tag agents.</p>
      ) : (
        <MatchedAgents agents={matched} />
      )}
    </Panel>
  );
}

function ParameterTable({ parameters }: Pick<Assignment, 'parameters'>) {
  const values = Object.entries(parameters).flatMap(([module, set]) =>
    Object.entries(set).map(([name, value]) => ({ module, name, value: textOf(value) })),
  );
  if (values.length === 0) return null;
  return (
    <Panel title="Parameters" flush>
      <div className="overflow-x-auto">
        <table className="w-full text-left text-sm">
          <thead className="border-b text-muted text-xs">
            <tr>
              <th className="px-4 py-2 font-medium">Module</th>
              <th className="px-4 py-2 font-medium">Parameter</th>
              <th className="w-2/3 px-4 py-2 font-medium">Value</th>
            </tr>
          </thead>
          <tbody className="divide-y">
            {values.map(({ module, name, value }) => (
              <tr key={`${module} ${name}`}>
                <td className="px-4 py-1.5">{visibleText(module)}</td>
                <td className="px-4 py-1.5 font-mono text-xs">{visibleText(name)}</td>
                <td className="whitespace-pre-wrap px-4 py-1.5 font-mono text-xs">
                  <Text text={value} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
