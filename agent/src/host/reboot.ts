import type { Clock } from '../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { HostFailure } from './failure.ts';
import { runCommand } from './processes/run-command.ts';
import { exists, readText } from './read-system.ts';

/**
 * Files that packages on Debian and SUSE create to indicate that the running system needs a reboot. Each boot removes
 * them.
 */
export const rebootMarkers = ['/run/reboot-required', '/run/reboot-needed'] as const;

/**
 * Returns an identifier of this boot. Contains the start time of the first process, because the kernel's boot ID stays
 * the same when a container reboots.
 * @throws HostFailure if /proc cannot be read
 */
export function currentBoot(): string {
  const id = readText('/proc/sys/kernel/random/boot_id')?.trim();
  const status = readText('/proc/1/stat');
  if (!id || status === null) throw new HostFailure("cannot read the machine's boot time from /proc");
  return bootOf(id, status);
}

/** @param status text of /proc/1/stat; see proc_pid_stat(5) */
export function bootOf(id: string, status: string): string {
  // The second field is a name in parentheses, which may contain spaces. The start time is field 22.
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
  return `${id}/${started}`;
}

export const needsReboot = (): boolean => rebootMarkers.some(exists);

/** Begins a reboot. @throws HostFailure with the message of shutdown(8) */
export async function requestReboot(context: {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
}): Promise<void> {
  const result = await runCommand(
    {
      program: 'shutdown',
      args: ['-r', 'now'],
      timeLimit: 60_000,
      outputCap: 4096,
      started: (process) => context.startedProcess(process),
    },
    context.clock,
  );
  if (result.exitCode !== 0) throw new HostFailure(`cannot reboot: shutdown failed: ${result.stderr.trim()}`);
}
