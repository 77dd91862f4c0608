import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import type { LoginAccount } from '../accounts/login-account.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { openUnnamed } from '../processes/unnamed-file.ts';

/** Runs a database client program with SQL on its standard input. */

export interface ClientContext {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
  limits: { scriptMs: number };
}

export interface ClientRun {
  program: string;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** The account that the program runs as; null for the agent's own. */
  account: LoginAccount | null;
  /** SQL, which never appears in the arguments or the environment of a process. */
  text: string;
}

/**
 * Key of an advisory lock that no other program uses. A change acquires the lock, and an observation waits for its
 * release.
 */
export const lockNumber = 7_201_955_431;

/** Seconds for which a client waits for the advisory lock, and for locks on objects. */
export const lockSeconds = 30;

const outputCap = 32 * 1024 * 1024;

/** Waits until the agent has recorded the process, then executes its arguments. */
const gate = 'read -r REPLY <&4 || exit 125; exec "$@" </proc/self/fd/3 3<&- 4<&-';

export async function runClient(run: ClientRun, context: ClientContext): Promise<CommandResult> {
  const { program, args, environment, account, text } = run;
  const become =
    account === null
      ? []
      : ['setpriv', '--reuid', `${account.uid}`, '--regid', `${account.gid}`, '--init-groups', '--'];
  const identity: Record<string, string> =
    account === null ? {} : { HOME: account.home, USER: account.name, LOGNAME: account.name };
  const file = openUnnamed(text);
  try {
    return await runCommand(
      {
        program: 'sh',
        args: ['-c', gate, 'sh', ...become, program, ...args],
        environment: { ...identity, LC_ALL: 'C.UTF-8', ...environment },
        scriptFd: file.fd,
        timeLimit: context.limits.scriptMs,
        outputCap,
        started: (process) => context.startedProcess(process),
      },
      context.clock,
    );
  } finally {
    file.close();
  }
}
