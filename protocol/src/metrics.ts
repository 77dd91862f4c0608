import { z } from 'zod';

/** A machine's metrics at one point in time. The wire, the store, and the API use the same type. */

const amount = (text: string) => z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).nullable().describe(text);

export const sampleSchema = z
  .strictObject({
    collected_at: z.number().int().describe('time of the measurement, in Unix seconds'),
    cpu_usage: z.number().min(0).max(100).nullable().describe('CPU usage of the whole machine, in percent'),
    memory_total: amount('bytes of physical memory'),
    memory_used: amount('bytes of memory in use'),
    swap_used: amount('bytes of swap in use'),
    disk_total: amount('bytes of all mounted file systems that are not virtual; each file system is counted once'),
    disk_used: amount('bytes in use on these file systems'),
    load1: z.number().min(0).max(1e9).nullable().describe('load average of the last minute'),
    net_rx_bytes: amount(
      'bytes that network cards received since boot; on a machine without network cards, all interfaces except loopback and those on top of another interface',
    ),
    net_tx_bytes: amount('bytes that the same interfaces sent since boot'),
    processes: amount('number of processes; threads are not counted'),
    uptime: amount('seconds since boot'),
  })
  .meta({ id: 'Sample', description: 'A value is null if the agent could not collect it.' });
export type Sample = z.infer<typeof sampleSchema>;

/** All measures in a sample except the time, in the order of the store's columns. */
export const measureNames = [
  'cpu_usage',
  'memory_total',
  'memory_used',
  'swap_used',
  'disk_total',
  'disk_used',
  'load1',
  'net_rx_bytes',
  'net_tx_bytes',
  'processes',
  'uptime',
] as const satisfies readonly (keyof Sample)[];
export type MeasureName = (typeof measureNames)[number];

/** Measures that may be fractional. All other measures are whole numbers. */
export const fractionalMeasures: ReadonlySet<MeasureName> = new Set(['cpu_usage', 'load1']);

/** Counters since boot. Their value for a period is the last value in the period. */
export const countingMeasures: ReadonlySet<MeasureName> = new Set(['net_rx_bytes', 'net_tx_bytes', 'uptime']);
