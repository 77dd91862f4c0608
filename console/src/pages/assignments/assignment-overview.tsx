import type { Assignment } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { type AssignmentWithMatches, modulesOf } from '../../api/assignments.ts';
import { Dot } from '../../parts/badge.tsx';
import { linkClasses } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import { Facts } from '../../parts/facts.tsx';
import { Panel } from '../../parts/panel.tsx';
import { SkeletonRows } from '../../parts/states.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { ModuleLinks } from '../links.tsx';
import { findingTones, findingWords } from '../reconcile/sync-tones.ts';
import { useFleetSync } from '../reconcile/use-fleet-sync.ts';
import { AssignmentRuns } from './assignment-runs.tsx';
import { MatchedAgents, matchText } from './matched-agents.tsx';
import { countedFindings, type Finding, type FindingCount, withFindings } from './matched-states.ts';
import { textOf } from './parameters.ts';
import { useMatchedAgents } from './use-matched-agents.ts';

/** Shows an assignment's modules, agents, parameters, and latest runs. */
export function AssignmentOverview({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { modules, selector, description, parameters, precedence, matches } = assignment;
  return (
    <div className="space-y-4">
      <div className="grid gap-4 lg:grid-cols-[3fr_2fr]">
        <div className="min-w-0 space-y-4">
          <Panel title="Assignment">
            <div className="space-y-4">
              {description !== null && (
                <p className="text-sm">
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
                    selector === '' ? (
                      'empty, matches no agent'
                    ) : (
                      <code key="selector" className="font-mono text-xs [overflow-wrap:anywhere]">
                        {visibleText(selector)}
                      </code>
                    ),
                  ],
                  ...(precedence === 0 ? [] : [['Precedence', String(precedence)] as const]),
                ]}
              />
            </div>
          </Panel>
          <AssignmentRuns name={assignment.name} title="Last applies" kind="apply" maxRuns={5} />
        </div>
        <MatchesPanel ids={matches} selector={selector} />
      </div>
      <ParameterTable parameters={parameters} />
    </div>
  );
}

function MatchesPanel({ ids, selector }: { readonly ids: readonly string[]; readonly selector: string }) {
  const matched = useMatchedAgents(ids);
  const sync = useFleetSync();
  const listed = useMemo(() => withFindings(matched ?? [], sync), [matched, sync]);
  return (
    <Panel title={matched === undefined ? 'Matches' : `Matches ${matchText(matched)}`} className="self-start">
      {matched === undefined ? (
        <SkeletonRows rows={2} />
      ) : matched.length === 0 ? (
        <p className="text-muted text-sm">No approved agent matches now. Change the selector, or tag agents.</p>
      ) : (
        <div className="space-y-3">
          <SyncCounts counts={countedFindings(matched, sync)} selector={selector} />
          <MatchedAgents agents={listed} selector={selector} />
        </div>
      )}
    </Panel>
  );
}

/** Returns the address of the list of agents that have a finding. */
function listOf(finding: Finding, selector: string) {
  if (finding === 'in_sync' || finding === 'never_applied')
    return { to: '/agents', search: { q: selector, status: finding } };
  if (finding === 'outdated' || finding === 'accepted')
    return { to: '/out-of-sync', search: { tab: finding, filter: selector } };
  return {
    to: '/out-of-sync',
    search: { filter: selector, ...(finding === 'out_of_sync' ? {} : { reason: finding }) },
  };
}

/** The number of agents in each sync state, with links to these agents. */
function SyncCounts({ counts, selector }: { readonly counts: readonly FindingCount[]; readonly selector: string }) {
  if (counts.length === 0) return null;
  return (
    <ul aria-label="Agents by sync state" className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
      {counts.map(({ finding, count }) => (
        <li key={finding}>
          <Dot tone={findingTones[finding]}>
            <Link {...(listOf(finding, selector) as { to: '/' })} className={linkClasses}>
              {countText(count)} {findingWords[finding]}
            </Link>
          </Dot>
        </li>
      ))}
    </ul>
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
