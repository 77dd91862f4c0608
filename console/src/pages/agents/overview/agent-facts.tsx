import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { latestSampleQuery } from '../../../api/metrics.ts';
import { amountText } from '../../../charts/series.ts';
import { Id } from '../../../parts/copy.tsx';
import { Facts } from '../../../parts/facts.tsx';
import { Meter } from '../../../parts/meter.tsx';
import { Panel } from '../../../parts/panel.tsx';
import { Text } from '../../../parts/text.tsx';
import { Elapsed, shortDuration, Time } from '../../../parts/time.tsx';
import { systemText } from '../agent-state.ts';

const pins: Record<Agent['pin_source'], string> = {
  flag: 'given at enrollment',
  pinned: 'pinned earlier',
  discovery: 'from discovery',
  first_use: 'trusted on first use',
};

/** Facts about the machine, as reported by the agent. */
export function MachineFacts({ agent }: { readonly agent: Agent }) {
  const { attributes } = agent;
  const of = (key: string) => (Object.hasOwn(attributes, key) ? (attributes[key] as string) : '');
  const memory = Number(of('memory_bytes'));
  return (
    <Panel title="Machine">
      <Facts
        facts={[
          ['Hostname', <Text key="hostname" text={agent.initial_hostname} maxLength={80} />],
          ['System', <Text key="system" text={systemText(agent) || '–'} maxLength={80} />],
          ['Kernel', <Text key="kernel" text={of('kernel') || '–'} maxLength={80} />],
          ['Architecture', <Text key="arch" text={of('arch') || '–'} maxLength={40} />],
          ['Processors', <Text key="cpus" text={of('cpus') || '–'} maxLength={20} />],
          ['Memory', Number.isFinite(memory) && memory > 0 ? amountText(memory, 'B') : '–'],
          ['Virtualization', <Text key="virtualization" text={of('virtualization') || '–'} maxLength={40} />],
          [
            'Address',
            <code key="ip" className="font-mono text-xs">
              {agent.initial_ip}
            </code>,
          ],
          ['Agent version', <Text key="version" text={agent.agent_version} maxLength={40} />],
          ['Node ID', <Id key="id" id={agent.node_id} length={12} />],
          [
            'Orchestrator key',
            <span key="pin" className={agent.pin_source === 'first_use' ? 'text-warn' : undefined}>
              {pins[agent.pin_source]}
            </span>,
          ],
          agent.connected
            ? ['Connected for', <Elapsed key="connected" at={agent.connected_at} />]
            : ['Last seen', <Time key="seen" at={agent.last_seen_at} />],
        ]}
      />
    </Panel>
  );
}

/** The newest sample of the machine's load. */
export function LastMeasured({ agent }: { readonly agent: Agent }) {
  const { data } = useQuery(latestSampleQuery(agent.node_id));
  if (data === undefined || data === null) return null;
  const part = (used: number | null, total: number | null) => (used === null || !total ? null : used / total);
  const rows: readonly (readonly [string, number | null])[] = [
    ['CPU', part(data.cpu_usage, 100)],
    ['Memory', part(data.memory_used, data.memory_total)],
    ['Disk', part(data.disk_used, data.disk_total)],
  ];
  return (
    <Panel
      title="Last measured"
      actions={
        <span className="text-muted text-xs">
          <Time at={data.collected_at} />
          {data.uptime !== null && ` · up ${shortDuration(data.uptime)}`}
        </span>
      }
    >
      <dl className="space-y-1.5">
        {rows.map(([name, share]) => (
          <div key={name} className="flex items-center gap-3 text-sm">
            <dt className="w-20 text-muted">{name}</dt>
            <dd className="min-w-0 flex-1">
              <Meter share={share} />
            </dd>
          </div>
        ))}
      </dl>
      <Link
        to="."
        search={((before: object) => ({ ...before, tab: 'metrics' })) as never}
        className="mt-3 inline-block rounded text-accent text-sm hover:underline"
      >
        All metrics
      </Link>
    </Panel>
  );
}
