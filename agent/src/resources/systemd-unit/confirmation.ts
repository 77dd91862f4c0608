import { HostFailure } from '../../host/failure.ts';
import { greetingOf } from '../../host/network/greeting.ts';
import { endText } from '../../host/processes/failure-text.ts';
import { runCommand } from '../../host/processes/run-command.ts';
import type { Machine } from '../provider/provider.ts';
import { serviceOf } from './declared.ts';
import type { Body } from './unit-file.ts';
import type { Work } from './work.ts';

/** Checks with `confirm_port` and `confirm_command` that a service still works. */

interface Confirmation {
  port: number | null;
  banner: string | null;
  command: string | null;
}

type Fields = Pick<Body, 'confirm_port' | 'confirm_banner' | 'confirm_command'>;

/** Returns the checks of a service; null if it has none. */
export function confirmationOf({ confirm_port, confirm_banner, confirm_command }: Fields): Confirmation | null {
  if (confirm_port == null && confirm_command == null) return null;
  return { port: confirm_port ?? null, banner: confirm_banner ?? null, command: confirm_command ?? null };
}

/**
 * Milliseconds before the first check. A daemon that reloads on a signal may not have handled the signal yet when
 * systemd reports the end of the reload, so an earlier check could still reach the daemon's previous state.
 */
const settleMs = 1_000;
const retryMs = 500;
/**
 * Milliseconds within which the checks must succeed. Two rounds of checks, one for the new state and one for the
 * restored state, take less than 30 s.
 */
const limitMs = 12_000;
/** Number of consecutive successes required, because a daemon may exit a moment after it has started. */
const successes = 2;

/** Checks the services that were started, reloaded, or restarted, and records why a check failed. */
export async function confirmWork(works: readonly Work[], machine: Machine): Promise<void> {
  await Promise.all(
    works.map(async (work) => {
      const service = serviceOf(work.item.resource);
      const confirmation = service === null ? null : confirmationOf(service);
      const isDue = work.item.kind === 'apply' && work.process !== null && work.process !== 'stop';
      if (confirmation === null || !isDue || work.failure !== null) return;
      const why = await faultWithin(limitMs, confirmation, work, machine).catch((error: unknown) => {
        if (error instanceof HostFailure) return error.message;
        throw error;
      });
      if (why !== null) work.failure = `${work.name} does not work after its ${work.process}: ${why}`;
    }),
  );
}

async function faultWithin(
  ms: number,
  confirmation: Confirmation,
  work: Work,
  machine: Machine,
): Promise<string | null> {
  const { clock, stop } = machine;
  const pause = (time: number) => new Promise<void>((resolve) => clock.after(time, resolve));
  const deadline = clock.monotonic() + ms;
  await pause(settleMs);
  let succeeded = 0;
  let completeFault: string | null = null;
  for (let attempt = 1; ; attempt++) {
    const left = deadline - clock.monotonic();
    const fault = await faultNow(confirmation, Math.max(left, retryMs), work, machine);
    succeeded = fault === null ? succeeded + 1 : 0;
    if (succeeded >= successes) return null;
    if (fault?.isTimeLimit === false) completeFault = fault.text;
    const isLast = stop.aborted || clock.monotonic() >= deadline || attempt * retryMs >= ms;
    // The last attempt may have had little time, so the fault of an earlier attempt that ran to its end is more
    // informative.
    if (fault !== null && isLast) return `${completeFault ?? fault.text} within ${ms / 1000} s`;
    await pause(retryMs);
  }
}

interface Fault {
  text: string;
  /** Whether the check failed only because it did not finish within the time limit. */
  isTimeLimit: boolean;
}

async function faultNow(
  { port, banner, command }: Confirmation,
  timeLimit: number,
  { item }: Work,
  machine: Machine,
): Promise<Fault | null> {
  const found = (text: string): Fault => ({ text, isTimeLimit: false });
  const isSecret = item.resource.sensitive_fields.some((field) => field.startsWith('confirm_'));
  const deadline = machine.clock.monotonic() + timeLimit;
  if (port !== null) {
    const greeting = await greetingOf(port, banner, timeLimit, machine.clock);
    if (greeting.is === 'refused') return found(`it accepted no connection on port ${port} (${greeting.why})`);
    if (banner !== null && !greeting.text.startsWith(banner))
      return found(
        `it did not send the greeting ${isSecret ? 'as declared' : `with ${JSON.stringify(banner)}`} on port ${port}`,
      );
  }
  if (command === null) return null;
  const { exitCode, signal, timedOut, stdout, stderr } = await runCommand(
    {
      program: 'sh',
      args: ['-c', command],
      timeLimit: Math.max(deadline - machine.clock.monotonic(), retryMs),
      outputCap: 4096,
      started: (process) => machine.startedProcess(process),
    },
    machine.clock,
  );
  if (exitCode === 0) return null;
  // The command can print any line of a file that the service follows.
  const words = isSecret || machine.followsSecret(item.resource) ? '' : (stderr || stdout).trim().slice(0, 500);
  const how = timedOut ? 'did not end' : endText({ exitCode, signal });
  return { text: `\`confirm_command\` ${how}${words === '' ? '' : ` (${words})`}`, isTimeLimit: timedOut };
}
