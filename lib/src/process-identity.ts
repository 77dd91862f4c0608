import { readFileSync } from 'node:fs';

/** Distinguishes a process from a later process with the same PID. Linux only. */
export interface ProcessIdentity {
  pid: number;
  /** Start time in kernel ticks since boot; empty if the process is not running. */
  startTicks: string;
  bootId: string;
}

export function identityOf(pid: number): ProcessIdentity {
  return { pid, startTicks: startTicksOf(pid) ?? '', bootId: bootId() };
}

/** Reports whether the same process is still running. */
export function isRunning(process: ProcessIdentity): boolean {
  return process.bootId === bootId() && process.startTicks !== '' && startTicksOf(process.pid) === process.startTicks;
}

function startTicksOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the program name in parentheses, which may contain any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

let knownBootId: string | null = null;
function bootId(): string {
  if (knownBootId === null) {
    try {
      knownBootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    } catch {
      knownBootId = '';
    }
  }
  return knownBootId;
}
