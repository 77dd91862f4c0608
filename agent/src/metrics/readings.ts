/**
 * What the texts of /proc say, by pure functions. Null is what is missing or malformed: nothing here throws, and nothing
 * makes a number up.
 */

/** Digits that a number holds exactly. @returns null for anything else */
function count(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

/** Ticks since boot of all processors together: what was idle, and each kind of work. */
export interface CpuTimes {
  idle: number;
  iowait: number;
  /** user, nice, system, irq, softirq, steal: those that the kernel has. */
  busy: readonly number[];
}

/**
 * @param text of /proc/stat. What guests took is in user and nice already; what the hypervisor gave to others (steal) was
 *   wanted here, and counts as work.
 */
export function parseCpuTimes(text: string): CpuTimes | null {
  const line = /^cpu[ \t]+(.*)$/m.exec(text)?.[1];
  const fields = (line ?? '').trim().split(/\s+/).slice(0, 8).map(count);
  if (fields.length < 4 || fields.includes(null)) return null;
  const [user, nice, system, idle, iowait = 0, ...others] = fields as [number, number, number, number, ...number[]];
  return { idle, iowait, busy: [user, nice, system, ...others] };
}

/**
 * Percentage of the time between two readings that was worked.
 * @returns null when no time has passed. A counter that has gone back, as iowait does and as all may when a processor is
 *   taken out, stands still here.
 */
export function cpuUsage(before: CpuTimes, after: CpuTimes): number | null {
  const grown = (from: number | undefined, to: number) => Math.max(0, to - (from ?? 0));
  const idle = grown(before.idle, after.idle) + grown(before.iowait, after.iowait);
  const busy = after.busy.reduce((sum, ticks, kind) => sum + grown(before.busy[kind], ticks), 0);
  const all = idle + busy;
  return all > 0 ? Math.round((10_000 * busy) / all) / 100 : null;
}

export interface Memory {
  total: number | null;
  used: number | null;
  swapUsed: number | null;
}

/**
 * @param text of /proc/meminfo. Bytes. What is used is what is not available, as the kernel reckons it (`MemAvailable`);
 *   kernels that do not are older than any that runs this agent, and get null.
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

/** @param text of /proc/loadavg. The load of the last minute. */
export function parseLoad(text: string): number | null {
  const load = /^(\d{1,9}(?:\.\d{1,6})?) /.exec(text)?.[1];
  return load === undefined ? null : Number(load);
}

/** @param text of /proc/uptime. Whole seconds since boot. */
export function parseUptime(text: string): number | null {
  return count(/^(\d+)(?:\.\d+)? /.exec(text)?.[1]);
}

/**
 * @param names in /proc. Processes; their threads are not there.
 * @returns null where those of others are hidden from this user (hidepid): the first one is always there
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
