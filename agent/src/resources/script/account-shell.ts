import { setOpenOwnership } from '../../host/files/ownership.ts';
import { type Command, type CommandResult, runCommand } from '../../host/processes/run-command.ts';
import { openUnnamed } from '../../host/processes/unnamed-file.ts';
import type { Machine } from '../provider/provider.ts';
import type { ScriptAccount } from './launch.ts';

/** Waits until the agent has recorded the process. */
const gate = 'read -r REPLY <&4 || exit 125; unset REPLY; exec 4<&-;';

export interface AccountShell {
  /** Shell code. Its arguments are `$1` and so on. */
  text: string;
  args: readonly string[];
  directory: string;
  environment: Readonly<Record<string, string>>;
  /** Content of the file `/proc/$$/fd/3`, which only the account can open. */
  secret: string;
  /** Milliseconds. */
  timeLimit: number;
  /** Null to run as the agent's own account. */
  account: ScriptAccount | null;
  printed?: Command['printed'];
}

/**
 * Runs shell code as an account. The secret is in an unnamed file that only the account can open, so that it never
 * appears in the arguments or the environment of a process and leaves no file behind.
 */
export async function runAccountShell(shell: AccountShell, machine: Machine): Promise<CommandResult> {
  const { account, printed } = shell;
  const file = openUnnamed(shell.secret);
  try {
    if (account !== null) setOpenOwnership(file.fd, { uid: account.uid, gid: account.gid, mode: 0o600 });
    const text = `cd -- "$1" || exit 1; shift\n${shell.text}`;
    // Starting a program takes longer than most queries, so a second shell is started only for a different account.
    const args =
      account === null
        ? [`${gate}\n${text}`]
        : [
            ...[`${gate} exec "$@"`, 'sh', account.setpriv, '--reuid', `${account.uid}`, '--regid', `${account.gid}`],
            ...['--init-groups', '--', '/bin/sh', '-c', text],
          ];
    return await runCommand(
      {
        program: '/bin/sh',
        args: ['-c', ...args, 'sh', shell.directory, ...shell.args],
        environment: { ...shell.environment, ...identityOf(account) },
        scriptFd: file.fd,
        timeLimit: shell.timeLimit,
        outputCap: 64 * 1024,
        started: (process) => machine.startedProcess(process),
        ...(printed === undefined ? {} : { printed }),
      },
      machine.clock,
    );
  } finally {
    file.close();
  }
}

const identityOf = (account: ScriptAccount | null): Record<string, string> =>
  account === null ? {} : { HOME: account.home, USER: account.name, LOGNAME: account.name };
