import { z } from 'zod';

/** A measurement of a machine; the same on the wire, in the store, and in answers. */

const amount = (text: string) => z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).nullable().describe(text);

export const sampleSchema = z
  .strictObject({
    collected_at: z.number().int().describe('when the agent took it, in Unix seconds'),
    cpu_usage: z.number().min(0).max(100).nullable().describe('of the whole machine, 0 to 100'),
    memory_total: amount('bytes of physical memory'),
    memory_used: amount('bytes'),
    swap_used: amount('bytes'),
    disk_total: amount('bytes over all mounted file systems that are not virtual, each once'),
    disk_used: amount('bytes'),
    load1: z.number().min(0).max(1e9).nullable().describe('load of the last minute'),
    net_rx_bytes: amount(
      'bytes received since boot by the network cards; on a machine without network cards, by all interfaces except loopback and those on top of another interface',
    ),
    net_tx_bytes: amount('bytes sent since boot by the same interfaces'),
    processes: amount('number of processes, without their threads'),
    uptime: amount('seconds since boot'),
  })
  .meta({ id: 'Sample', description: 'A value is null if the agent could not collect it.' });
export type Sample = z.infer<typeof sampleSchema>;

/** All measures of a sample, without the time, in the order of their columns in the store. */
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

/** The measures that may have a fraction; the others are whole numbers. */
export const fractionalMeasures: ReadonlySet<MeasureName> = new Set(['cpu_usage', 'load1']);

/** Counters since boot. Their value over a period is the value at the end of the period. */
export const countingMeasures: ReadonlySet<MeasureName> = new Set(['net_rx_bytes', 'net_tx_bytes', 'uptime']);
