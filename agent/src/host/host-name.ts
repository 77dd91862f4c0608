import { hostname } from 'node:os';
import type { Clock } from '../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { HostFailure } from './failure.ts';
import { writeParameter } from './kernel-parameter.ts';
import { runCommand } from './processes/run-command.ts';

/** Returns the kernel's hostname. */
export const runningHostname = (): string => hostname();

/**
 * Sets the kernel's hostname until the next boot. Works without systemd-hostnamed, which some machines lack.
 * @throws HostFailure
 */
export async function setRunningHostname(
  name: string,
  context: { clock: Clock; startedProcess(process: ProcessIdentity): void },
): Promise<void> {
  try {
    writeParameter('kernel/hostname', name);
    return;
  } catch (error) {
    // In a container, /proc/sys is usually read-only, but sethostname(2) may be permitted.
    if (!(error instanceof HostFailure)) throw error;
  }
  const result = await runCommand(
    {
      program: 'hostname',
      args: ['--', name],
      timeLimit: 30_000,
      outputCap: 4096,
      started: (process) => context.startedProcess(process),
    },
    context.clock,
  );
  if (result.exitCode !== 0)
    throw new HostFailure(
      `the hostname cannot be set: ${result.stderr.trim() || `hostname exited with ${result.exitCode ?? result.signal}`}`,
    );
}
