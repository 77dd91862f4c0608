import type { ModuleOrder } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { agentsQuery } from '../../api/agents.ts';
import { orderQuery } from '../../api/modules.ts';
import { Button } from '../../parts/button.tsx';
import { Picker } from '../../parts/form/picker.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { agentOptions } from './agent-options.ts';

/** In which order the resources of a module come, and what waits for what: as it is written, or as one agent gets it. */
export function OrderTab({ name }: { readonly name: string }) {
  const agents = useQuery(agentsQuery);
  const [agent, setAgent] = useUrlState<string>('agent', '');
  const order = useQuery(orderQuery([name], agent === '' ? null : agent));
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-end gap-2">
        <div className="w-72 max-sm:w-full">
          <Picker
            label="As which agent gets it"
            placeholder="As it is written; type an agent's name"
            options={agentOptions(agents.data ?? [])}
            value={agent}
            onPick={setAgent}
          />
        </div>
        {agent !== '' && <Button onClick={() => setAgent('')}>As it is written</Button>}
      </div>
      <Panel flush>
        {order.isPending ? (
          <SkeletonRows />
        ) : order.isError ? (
          <Failure
            title={agent === '' ? 'The order could not be found' : 'This agent cannot have it'}
            error={order.error}
            retry={() => void order.refetch()}
          />
        ) : order.data.resources.length === 0 ? (
          <Empty title="No resource">
            {agent === '' ? 'This module holds none yet.' : 'None of it is for this agent.'}
          </Empty>
        ) : (
          <OrderList resources={order.data.resources} />
        )}
      </Panel>
    </div>
  );
}

const waits = [
  ['depends_on', 'after'],
  ['reload_on', 'reloaded by'],
  ['restart_on', 'restarted by'],
  ['rerun_on', 'run again by'],
] as const;

function OrderList({ resources }: { readonly resources: ModuleOrder['resources'] }) {
  const called = (index: number) => resources[index]?.id ?? resources[index]?.identity ?? String(index + 1);
  return (
    <ol className="divide-y">
      {resources.map((resource, index) => {
        const triggers = new Set([...resource.reload_on, ...resource.restart_on, ...resource.rerun_on]);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the order is what they are
          <li key={index} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2 text-sm">
            <span className="tabular w-6 text-right text-muted text-xs">{index + 1}</span>
            <span className="flex min-w-32 font-medium max-sm:flex-1">
              <Line text={resource.id ?? '–'} />
            </span>
            <span className="font-mono text-muted text-xs">{resource.type ?? 'by variant'}</span>
            <span className="flex min-w-0 flex-1 font-mono text-xs max-sm:basis-full max-sm:pl-10">
              {resource.identity !== null && <Line text={resource.identity} />}
            </span>
            <span className="flex flex-wrap gap-1.5 max-sm:pl-10">
              {waits.map(([field, word]) => {
                const of = resource[field].filter((place) => field !== 'depends_on' || !triggers.has(place));
                return of.length === 0 ? null : (
                  <span key={field} className="rounded bg-raised px-1.5 py-0.5 text-muted text-xs">
                    {word} {of.map(called).join(', ')}
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
