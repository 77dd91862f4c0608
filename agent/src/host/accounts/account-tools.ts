import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { openUnnamed } from '../processes/unnamed-file.ts';

/** The programs that change accounts: nothing else writes /etc/passwd and its kin. */

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

/** How long another program may hold the lock on the files. */
const lockPatienceMs = 20_000;
const lockPauseMs = 250;

/**
 * Runs one of the tools. While another program holds the lock on the files, it is tried again for a while.
 * @throws HostFailure with what it said
 */
export async function runAccountTool(
  tool: AccountTool,
  args: readonly string[],
  context: ToolContext,
  input?: string,
): Promise<void> {
  const deadline = context.clock.monotonic() + lockPatienceMs;
  for (;;) {
    const result = await execute(tool, args, context, input);
    if (result.exitCode === 0) return;
    const said = lastWords(result);
    if (!/cannot lock|try again later/.test(said) || context.clock.monotonic() > deadline)
      throw new HostFailure(failureText(tool, result, said));
    await new Promise<void>((resolve) => context.clock.after(lockPauseMs, resolve));
  }
}

async function execute(
  tool: AccountTool,
  args: readonly string[],
  context: ToolContext,
  input: string | undefined,
): Promise<CommandResult> {
  // Changing a number goes through all that is in the home directory.
  const timeLimit = context.limits.scriptMs;
  const rest = {
    timeLimit,
    outputCap: 4096,
    started: (process: ProcessIdentity) => context.startedProcess(process),
    environment: { LC_ALL: 'C' },
  };
  if (input === undefined) return runCommand({ program: tool, args, ...rest }, context.clock);
  // A password never appears in a list of processes: it comes as an open file without a name.
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

const lastWords = ({ stdout, stderr }: CommandResult): string =>
  (stderr.trim() || stdout.trim()).split('\n').slice(-3).join('; ').slice(0, 1000);

function failureText(tool: AccountTool, { exitCode, signal, timedOut }: CommandResult, said: string): string {
  if (timedOut) return `${tool} was stopped: it took too long`;
  if (/cannot lock|try again later/.test(said))
    return `${said}; another program has held the lock on the files in /etc for ${lockPatienceMs / 1000} s`;
  const busy = /currently used by process (\d+)/.exec(said);
  if (busy !== null) return `${said}${programOf(busy[1] as string)}; end it, or sign the user out, and apply again`;
  return said === '' ? `${tool} ended with ${exitCode ?? signal}` : said;
}

function programOf(pid: string): string {
  try {
    return ` (${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()})`;
  } catch {
    return '';
  }
}

/**
 * What runs as this user, at most the first five.
 * @returns such as `sshd (1234)`
 */
export function processesOf(uid: number): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || found.length === 5) continue;
    try {
      if (statSync(`/proc/${pid}`).uid !== uid) continue;
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      // One that has ended, and that nobody has asked about yet, uses nothing.
      if (/^ [ZX]/.test(stat.slice(stat.lastIndexOf(')') + 1))) continue;
      found.push(`${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (${pid})`);
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

/**
 * Whether a name that is not in /etc/passwd is known all the same, from a directory service for example.
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
