import type { Verification } from '@muster/protocol/wire';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import { HostFailure } from '../host/failure.ts';
import { httpStatus, tcpRefusal } from '../host/probe.ts';
import { lastLine } from '../host/processes/failure-text.ts';
import { killProcessGroup } from '../host/processes/run-command.ts';
import { runShell } from '../resources/script/script.ts';
import type { Progress } from './progress.ts';

/**
 * Verifications run once an apply has put everything in place. Each one is retried until it passes or times out,
 * because a service needs a moment after it starts. Verifications change nothing, so a restarted agent simply repeats
 * them.
 */

/** Milliseconds between attempts, and between checks for an interruption. */
const pollMs = 250;
const outputCap = 4096;

/**
 * Runs an operation's verifications in order.
 * @returns why the first failed verification failed; null if all pass or the operation is canceled
 * @throws Stopped if the agent must stop
 */
export async function verifyApplied(progress: Progress): Promise<string | null> {
  const { verify = [] } = progress.operation.message;
  for (const [index, verification] of verify.entries()) {
    if (progress.interrupted()) return null;
    const problem = await retryUntilOk(verification, progress);
    if (problem === null) continue;
    const left = verify.length - index - 1;
    const rest = left === 0 ? '' : `; ${left} more ${left === 1 ? 'was' : 'were'} not tried`;
    return `verify: module ${verification.module}: ${named(verification)} ${problem}${rest}. All resources are in place.`;
  }
  return null;
}

/** Returns the name of a verification for messages, without secrets or user names. */
function named(verification: Verification): string {
  const { type } = verification;
  if (verification.sensitive) return `${type} (sensitive)`;
  if (type === 'http') return `http ${withoutUser(verification.url)}`;
  if (type === 'tcp')
    return `tcp ${verification.host === null ? '' : `${verification.host} `}port ${verification.port}`;
  return `command \`${verification.command.length > 200 ? `${verification.command.slice(0, 200)}…` : verification.command}\``;
}

const withoutUser = (url: string): string => url.replace(/^(https?:\/\/)[^/?#]*@/i, '$1');

/**
 * Retries a verification until it passes or times out.
 * @returns the last problem; null if the verification passes or the operation is interrupted
 */
async function retryUntilOk(verification: Verification, progress: Progress): Promise<string | null> {
  const { clock } = progress.context;
  const deadline = clock.monotonic() + verification.timeout * 1000;
  let known: string | null = null;
  for (;;) {
    const { problem, cut } = await attempt(verification, deadline - clock.monotonic(), progress);
    if (problem === null || progress.interrupted()) return null;
    // Keeps an earlier problem, because the last attempt may have been interrupted before it found the cause.
    known = cut && known !== null ? known : problem;
    if (clock.monotonic() + pollMs >= deadline) return known;
    await new Promise<void>((resolve) => clock.after(pollMs, resolve));
    if (progress.interrupted()) return null;
  }
}

/**
 * Makes one attempt. The attempt is aborted if the operation is canceled, the agent stops, or the timeout expires. For
 * a command, the time limit of a `check` applies instead of the timeout.
 */
async function attempt(
  verification: Verification,
  left: number,
  progress: Progress,
): Promise<{ problem: string | null; cut: boolean }> {
  const { clock, limits } = progress.context;
  const cut = new AbortController();
  const limit = verification.type === 'command' ? limits.checkMs : Math.max(1, left);
  const deadline = clock.monotonic() + limit;
  let cancelWatch = () => {};
  const watch = (): void => {
    if (clock.monotonic() >= deadline || isAborted(progress)) cut.abort();
    else cancelWatch = clock.after(Math.max(1, Math.min(pollMs, deadline - clock.monotonic())), watch);
  };
  watch();
  try {
    const problem = await runOnce(verification, limit, cut.signal, progress);
    return { problem, cut: cut.signal.aborted };
  } finally {
    cancelWatch();
  }
}

/**
 * Reports whether the operation is interrupted. Unlike `interrupted`, does not throw, because the attempt must finish
 * first.
 */
const isAborted = ({ context, operation }: Progress): boolean => context.stopping() || operation.cancelled;

async function runOnce(
  verification: Verification,
  limit: number,
  signal: AbortSignal,
  progress: Progress,
): Promise<string | null> {
  if (verification.type === 'http') {
    const answer = await httpStatus(verification.url, signal);
    if (answer === verification.status) return null;
    if (typeof answer === 'number') return `answered ${answer}, not ${verification.status}`;
    // Omits the error message, because it may contain the address.
    return verification.sensitive ? 'was not answered' : `was not answered: ${answer}`;
  }
  if (verification.type === 'tcp') {
    const hosts = verification.host === null ? ['127.0.0.1', '::1'] : [verification.host];
    let first: string | null = null;
    for (const host of hosts) {
      const refusal = await tcpRefusal(host, verification.port, signal);
      if (refusal === null) return null;
      first ??= refusal;
    }
    return verification.sensitive ? 'does not accept connections' : `does not accept connections: ${first}`;
  }
  return commandFailure(verification, limit, signal, progress);
}

async function commandFailure(
  { command, sensitive }: Extract<Verification, { type: 'command' }>,
  limit: number,
  signal: AbortSignal,
  progress: Progress,
): Promise<string | null> {
  let running: ProcessIdentity | null = null;
  signal.addEventListener('abort', () => {
    if (running !== null) killProcessGroup(running.pid);
  });
  const machine = progress.view.machine((process) => {
    running = process;
    progress.context.observing(progress.id, process);
  });
  try {
    const result = await runShell(command, limit, outputCap, machine);
    running = null;
    if (result.exitCode === 0) return null;
    if (result.timedOut || signal.aborted) return `was stopped because it did not exit within ${limit / 1000} s`;
    const how = result.exitCode === null ? `was ended by ${result.signal}` : `ended with exit code ${result.exitCode}`;
    const last = sensitive ? '' : lastLine(result.stderr) || lastLine(result.stdout);
    return `${how}${last === '' ? '' : `: ${last}`}`;
  } catch (error) {
    if (error instanceof HostFailure) return `could not be run: ${error.message}`;
    throw error;
  }
}
