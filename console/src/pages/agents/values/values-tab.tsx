import type { Agent, AgentValue, ValueLayer } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { valuesQuery } from '../../../api/values.ts';
import { Badge } from '../../../parts/badge.tsx';
import { Panel } from '../../../parts/panel.tsx';
import { Loading, PanelSkeleton } from '../../../parts/skeletons.tsx';
import { Empty, Failure } from '../../../parts/states.tsx';
import { Line, Text, visibleText } from '../../../parts/text.tsx';
import { AssignmentLink, ModuleLinks } from '../../links.tsx';

/** The values of an agent's parameters by module, with their origins and the overridden values. */
export function ValuesTab({ agent }: { readonly agent: Agent }) {
  const { data, error, refetch } = useQuery(valuesQuery(agent.node_id));
  if (data === undefined)
    return error === null ? (
      <Loading label="Loading">
        <PanelSkeleton rows={6} size="line" />
      </Loading>
    ) : (
      <Failure error={error} retry={() => void refetch()} />
    );
  if (data.length === 0)
    return <Empty title="No parameters">No module that assignments enforce on this agent has parameters.</Empty>;
  return (
    <div className="space-y-4">
      {[...Map.groupBy(data, ({ module }) => module)].map(([module, values]) => (
        <Panel key={module} flush title={<ModuleLinks modules={[module]} />}>
          <ul aria-label={`Values of ${visibleText(module)}`} className="divide-y">
            {values.map((value) => (
              <ValueRow key={value.parameter} value={value} />
            ))}
          </ul>
        </Panel>
      ))}
    </div>
  );
}

function ValueRow({ value: { parameter, value, merge, layers, overrode, faults } }: { readonly value: AgentValue }) {
  const [only, ...others] = layers;
  const isMerged = merge !== 'replace' || faults.length > 0;
  return (
    <li className="grid gap-x-4 gap-y-1 px-4 py-2 text-sm sm:grid-cols-[12rem_minmax(0,1fr)]">
      <span className="flex min-w-0 flex-wrap items-center gap-x-2">
        <code className="flex min-w-0 font-mono text-xs">
          <Line text={parameter} maxLength={64} />
        </code>
        {merge !== 'replace' && <Badge>{merge}</Badge>}
      </span>
      <div className="min-w-0 space-y-1">
        {faults.map((fault) => (
          <p key={fault} className="text-bad">
            <Text text={fault} maxLength={400} />
          </p>
        ))}
        {faults.length === 0 && (
          <p className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            {only === undefined ? <span className="text-warn">no value</span> : <ValueText value={value} />}
            {only !== undefined && others.length === 0 && <Origin layer={only} />}
            {!isMerged && others.length > 0 && layers.map((layer) => <Origin key={layer.name} layer={layer} />)}
          </p>
        )}
        {isMerged && (others.length > 0 || faults.length > 0) && <Layers label="from" layers={layers} />}
        {overrode.length > 0 && <Layers label="overrode" layers={overrode} />}
      </div>
    </li>
  );
}

function Layers({ label, layers }: { readonly label: string; readonly layers: readonly ValueLayer[] }) {
  return (
    <ul className="space-y-0.5">
      {layers.map((layer) => (
        <li
          key={`${layer.from} ${layer.name}`}
          className="flex min-w-0 flex-wrap items-baseline gap-x-3 text-muted text-xs"
        >
          <span className="w-14 shrink-0">{label}</span>
          <ValueText value={layer.value} />
          <Origin layer={layer} />
        </li>
      ))}
    </ul>
  );
}

const ValueText = ({ value }: { readonly value: unknown }) => (
  <span className="min-w-0 font-mono text-xs [overflow-wrap:anywhere]">
    <Text text={JSON.stringify(value)} maxLength={400} />
  </span>
);

function Origin({ layer: { from, name, precedence } }: { readonly layer: ValueLayer }) {
  return (
    <span className="inline-flex min-w-0 items-baseline gap-1 text-muted text-xs">
      {from === 'assignment' && name !== null ? (
        <>
          <AssignmentLink name={name} />
          {precedence !== 0 && <span className="shrink-0">precedence {precedence}</span>}
        </>
      ) : from === 'requires' && name !== null ? (
        <>
          required by <ModuleLinks modules={[name]} />
        </>
      ) : (
        from
      )}
    </span>
  );
}
