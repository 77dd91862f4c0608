import type { Replica } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { replicasQuery } from '../../api/replicas.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { Panel } from '../../parts/panel.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';

const columns: Column<Replica>[] = [
  {
    id: 'name',
    header: 'Replica',
    width: '1.5fr',
    cell: ({ name, this_replica }) => (
      <span className="flex items-center gap-2">
        {name} {this_replica && <Badge>this one</Badge>}
      </span>
    ),
  },
  {
    id: 'state',
    header: 'State',
    width: '1fr',
    cell: ({ ready, draining }) => (
      <Dot tone={draining ? 'warn' : ready ? 'good' : 'bad'}>
        {draining ? 'Draining' : ready ? 'Ready' : 'Not ready'}
      </Dot>
    ),
  },
  { id: 'agents', header: 'Agents', width: '1fr', cell: ({ connected_agents }) => connected_agents },
  { id: 'leases', header: 'Leases', width: '1fr', from: 'sm', cell: ({ leases }) => leases.length },
  {
    id: 'heartbeat',
    header: 'Heartbeat',
    width: '1fr',
    from: 'sm',
    cell: ({ heartbeat_age_secs }) => `${heartbeat_age_secs.toFixed(1)} s ago`,
  },
  { id: 'version', header: 'Version', width: '1fr', from: 'sm', cell: ({ version }) => version },
  {
    id: 'config',
    header: 'Configuration',
    width: '1fr',
    from: 'sm',
    cell: ({ config_digest }) => <code className="font-mono text-xs">{config_digest?.slice(0, 8) ?? 'unknown'}</code>,
  },
];

/** The orchestrators that share the database; nothing if there is only one. */
export function Replicas() {
  const { data } = useQuery(replicasQuery);
  if (data === undefined || data.length === 0) return null;
  return (
    <Panel title="Replicas" flush>
      <DataTable
        rows={data}
        columns={columns}
        rowKey={({ incarnation }) => incarnation}
        label="Replicas"
        empty={null}
      />
    </Panel>
  );
}
