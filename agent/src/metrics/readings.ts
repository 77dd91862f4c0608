/**
 * Pure functions that parse files in /proc. Missing or malformed values are null. No function throws or guesses a
 * number.
 */

/** Parses a count. @returns null unless the text is a safe integer in decimal digits */
function count(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

/** Ticks since boot of all CPUs together. */
export interface CpuTimes {
  idle: number;
  iowait: number;
  /** Ticks of user, nice, system, irq, softirq, and steal, where the kernel reports them. */
  busy: readonly number[];
}

/**
 * Parses /proc/stat. The user and nice values include guest time. Time that the hypervisor gave to other machines
 * (steal) counts as busy, because this machine needed it.
 */
export function parseCpuTimes(text: string): CpuTimes | null {
  const line = /^cpu[ \t]+(.*)$/m.exec(text)?.[1];
  const fields = (line ?? '').trim().split(/\s+/).slice(0, 8).map(count);
  if (fields.length < 4 || fields.includes(null)) return null;
  const [user, nice, system, idle, iowait = 0, ...others] = fields as [number, number, number, number, ...number[]];
  return { idle, iowait, busy: [user, nice, system, ...others] };
}

/**
 * Computes the percentage of busy time between two readings. Treats a counter that has decreased as unchanged: iowait
 * may decrease, and when a CPU is removed, every counter may decrease.
 * @returns null if no time has passed
 */
export function cpuUsage(before: CpuTimes, after: CpuTimes): number | null {
  const increase = (from: number | undefined, to: number) => Math.max(0, to - (from ?? 0));
  const idle = increase(before.idle, after.idle) + increase(before.iowait, after.iowait);
  const busy = after.busy.reduce((sum, ticks, kind) => sum + increase(before.busy[kind], ticks), 0);
  const all = idle + busy;
  return all > 0 ? Math.round((10_000 * busy) / all) / 100 : null;
}

export interface Memory {
  total: number | null;
  used: number | null;
  swapUsed: number | null;
}

/**
 * Parses /proc/meminfo into bytes. Used memory is the total minus the kernel's `MemAvailable`; it is null on kernels
 * without that field, which are too old for this agent.
 */
export function parseMemory(text: string): Memory {
  const bytes = (name: string): number | null => {
    const kib = count(new RegExp(`^${name}:[ \\t]*(\\d+) kB$`, 'm').exec(text)?.[1]);
    return kib !== null && Number.isSafeInteger(kib * 1024) ? kib * 1024 : null;
  };
  const total = bytes('MemTotal');
  return {
    total,
    used: difference(total, bytes('MemAvailable')),
    swapUsed: difference(bytes('SwapTotal'), bytes('SwapFree')),
  };
}

const difference = (all: number | null, rest: number | null): number | null =>
  all === null || rest === null || rest > all ? null : all - rest;

/** Parses the one-minute load average from /proc/loadavg. */
export function parseLoad(text: string): number | null {
  const load = /^(\d{1,9}(?:\.\d{1,6})?) /.exec(text)?.[1];
  return load === undefined ? null : Number(load);
}

/** Parses the whole seconds since boot from /proc/uptime. */
export function parseUptime(text: string): number | null {
  return count(/^(\d+)(?:\.\d+)? /.exec(text)?.[1]);
}

/**
 * Counts processes without their threads.
 * @param names names in /proc
 * @returns null if the processes of other users are hidden (hidepid), in which case process 1 is missing
 */
export function countProcesses(names: readonly string[]): number | null {
  let processes = 0;
  let isFirstSeen = false;
  for (const name of names) {
    const first = name.charCodeAt(0);
    if (first < 48 || first > 57) continue;
    processes++;
    if (name === '1') isFirstSeen = true;
  }
  return isFirstSeen ? processes : null;
}
