import type { ModuleOrder } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { orderQuery } from '../../api/modules/modules.ts';
import { Button } from '../../parts/button.tsx';
import { Picker } from '../../parts/form/picker.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { agentOptions } from './agent-options.ts';

/** The execution order and dependencies of a module's resources, in general or for one agent. */
export function OrderTab({ name }: { readonly name: string }) {
  const agents = useQuery(agentsQuery);
  const options = useMemo(() => agentOptions(agents.data ?? []), [agents.data]);
  const [agent, setAgent] = useUrlState<string>('agent', '');
  const order = useQuery(orderQuery([name], agent === '' ? null : agent));
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-end gap-2">
        <div className="w-72 max-sm:w-full">
          <Picker
            label="Agent"
            placeholder="Any agent; type a name to choose one"
            options={options}
            value={agent}
            onPick={setAgent}
          />
        </div>
        {agent !== '' && <Button onClick={() => setAgent('')}>Any agent</Button>}
      </div>
      <Panel flush>
        {order.isPending ? (
          <SkeletonRows size="line" />
        ) : order.isError ? (
          <Failure
            title={agent === '' ? 'The order could not be loaded' : 'The module cannot be applied to this agent'}
            error={order.error}
            retry={() => void order.refetch()}
          />
        ) : order.data.resources.length === 0 ? (
          <Empty title="No resources">
            {agent === '' ? 'This module has no resources yet.' : 'This module has no resources for this agent.'}
          </Empty>
        ) : (
          <OrderList resources={order.data.resources} />
        )}
      </Panel>
    </div>
  );
}

const dependencies = [
  ['depends_on', 'after'],
  ['reload_on', 'reloaded by'],
  ['restart_on', 'restarted by'],
  ['rerun_on', 'run again by'],
] as const;

function OrderList({ resources }: { readonly resources: ModuleOrder['resources'] }) {
  const nameOf = (index: number) => resources[index]?.id ?? resources[index]?.identity ?? String(index + 1);
  return (
    <ol className="divide-y">
      {resources.map((resource, index) => {
        const triggers = new Set([...resource.reload_on, ...resource.restart_on, ...resource.rerun_on]);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: resources are identified by their position
          <li key={index} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2 text-sm">
            <span className="tabular w-6 text-right text-muted text-xs">{index + 1}</span>
            <span className="flex min-w-32 font-medium max-sm:flex-1">
              <Line text={resource.id ?? '–'} />
            </span>
            <span className="text-muted text-xs">{resource.type ?? 'by variant'}</span>
            <span className="flex min-w-0 flex-1 font-mono text-xs max-sm:basis-full max-sm:pl-10">
              {resource.identity !== null && <Line text={resource.identity} />}
            </span>
            <span className="flex flex-wrap gap-1.5 max-sm:pl-10">
              {dependencies.map(([field, word]) => {
                const of = resource[field].filter((dependency) => field !== 'depends_on' || !triggers.has(dependency));
                return of.length === 0 ? null : (
                  <span key={field} className="rounded bg-raised px-1.5 py-0.5 text-muted text-xs">
                    {word} {of.map(nameOf).join(', ')}
                  </span>
                );
              })}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
