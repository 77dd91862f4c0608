import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { openUnnamed } from '../processes/unnamed-file.ts';

/** Runs the programs that change accounts. No other code writes /etc/passwd and its related files. */

export type AccountTool =
  | 'useradd'
  | 'usermod'
  | 'userdel'
  | 'groupadd'
  | 'groupmod'
  | 'groupdel'
  | 'gpasswd'
  | 'chage'
  | 'chpasswd'
  | 'chgpasswd';

export interface ToolContext {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
  limits: { scriptMs: number };
}

/** Milliseconds to wait for another program to release the lock on the files. */
const maxLockWaitMs = 20_000;
const lockRetryMs = 250;

/**
 * Runs an account tool. Retries while another program holds the lock on the files.
 * @throws HostFailure with the tool's output
 */
export async function runAccountTool(
  tool: AccountTool,
  args: readonly string[],
  context: ToolContext,
  input?: string,
): Promise<void> {
  const deadline = context.clock.monotonic() + maxLockWaitMs;
  for (;;) {
    const result = await execute(tool, args, context, input);
    if (result.exitCode === 0) return;
    const output = lastLines(result);
    if (!/cannot lock|try again later/.test(output) || context.clock.monotonic() > deadline)
      throw new HostFailure(failureText(tool, result, output));
    await new Promise<void>((resolve) => context.clock.after(lockRetryMs, resolve));
  }
}

async function execute(
  tool: AccountTool,
  args: readonly string[],
  context: ToolContext,
  input: string | undefined,
): Promise<CommandResult> {
  // usermod changes the owner of every file in the home directory, so it has the time limit of scripts.
  const timeLimit = context.limits.scriptMs;
  const rest = {
    timeLimit,
    outputCap: 4096,
    started: (process: ProcessIdentity) => context.startedProcess(process),
    environment: { LC_ALL: 'C' },
  };
  if (input === undefined) return runCommand({ program: tool, args, ...rest }, context.clock);
  // Passes the password in an unnamed file, so that it never appears in a process list.
  const file = openUnnamed(input);
  try {
    const script = 'read -r REPLY <&4 || exit 125; exec "$@" </proc/self/fd/3 3<&- 4<&-';
    return await runCommand(
      { program: 'sh', args: ['-c', script, 'sh', tool, ...args], scriptFd: file.fd, ...rest },
      context.clock,
    );
  } finally {
    file.close();
  }
}

const lastLines = ({ stdout, stderr }: CommandResult): string =>
  (stderr.trim() || stdout.trim()).split('\n').slice(-3).join('; ').slice(0, 1000);

function failureText(tool: AccountTool, { exitCode, signal, timedOut }: CommandResult, output: string): string {
  if (timedOut) return `${tool} was stopped because it took too long`;
  if (/cannot lock|try again later/.test(output))
    return `${output}; another program has held the lock on the files in /etc for ${maxLockWaitMs / 1000} s; apply again`;
  const busy = /currently used by process (\d+)/.exec(output);
  if (busy !== null)
    return `${output}${programOf(busy[1] as string)}; terminate it, or sign the user out, and apply again`;
  return output === '' ? `${tool} exited with ${exitCode ?? signal}` : output;
}

function programOf(pid: string): string {
  try {
    return ` (${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()})`;
  } catch {
    return '';
  }
}

/**
 * Finds up to five processes of this user.
 * @returns entries such as `sshd (1234)`
 */
export function processesOf(uid: number): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || found.length === 5) continue;
    try {
      if (statSync(`/proc/${pid}`).uid !== uid) continue;
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // Skips zombies, because they no longer use the account.
      if (/^ [ZX]/.test(stat.slice(stat.lastIndexOf(')') + 1))) continue;
      found.push(`${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (${pid})`);
    } catch {
      // The process exited during the scan.
    }
  }
  return found;
}

/**
 * Reports whether a source other than the local files, such as a directory service, contains this name.
 * @param database `passwd` or `group`
 */
export async function isKnownElsewhere(database: 'passwd' | 'group', name: string, context: ToolContext) {
  const result = await runCommand(
    {
      program: 'getent',
      args: [database, '--', name],
      timeLimit: 30_000,
      outputCap: 4096,
      started: (process) => context.startedProcess(process),
    },
    context.clock,
  );
  return result.exitCode === 0 && result.stdout.startsWith(`${name}:`);
}
