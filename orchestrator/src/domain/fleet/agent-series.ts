import type { Sample } from '@muster/protocol';

/**
 * Converts samples to Prometheus series, with the same names for scraping and remote write. Values are in base units.
 * Counter names end in `_total`. Counters reset when the machine restarts.
 */

export interface AgentSeries {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  /** Returns the value; null if the machine did not measure it. */
  readonly of: (sample: Sample) => number | null;
}

const series = (
  name: string,
  type: AgentSeries['type'],
  help: string,
  of: (sample: Sample) => number | null,
): AgentSeries => ({ name: `muster_agent_${name}`, type, help, of });

export const agentSeries: readonly AgentSeries[] = [
  series('cpu_usage_ratio', 'gauge', 'Fraction of CPU time in use, from 0 to 1.', ({ cpu_usage }) =>
    cpu_usage === null ? null : cpu_usage / 100,
  ),
  series('memory_size_bytes', 'gauge', 'Physical memory.', (sample) => sample.memory_total),
  series('memory_used_bytes', 'gauge', 'Physical memory in use.', (sample) => sample.memory_used),
  series('swap_used_bytes', 'gauge', 'Swap in use.', (sample) => sample.swap_used),
  series('disk_size_bytes', 'gauge', 'Total size of all non-virtual file systems.', (sample) => sample.disk_total),
  series('disk_used_bytes', 'gauge', 'Used space of all non-virtual file systems.', (sample) => sample.disk_used),
  series('load1', 'gauge', 'One-minute load average.', (sample) => sample.load1),
  series('network_receive_bytes_total', 'counter', 'Bytes received since boot.', (sample) => sample.net_rx_bytes),
  series('network_transmit_bytes_total', 'counter', 'Bytes sent since boot.', (sample) => sample.net_tx_bytes),
  series('processes', 'gauge', 'Number of processes.', (sample) => sample.processes),
  series('uptime_seconds', 'gauge', 'Since boot.', (sample) => sample.uptime),
];
