import type { ResourceBodies } from '@muster/protocol/module';
import type { LoginAccount } from '../../host/accounts/login-account.ts';

/**
 * The command that runs a script whose text is passed as file descriptor 3. See `Command.scriptFd` for descriptors 3
 * and 4.
 */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  /** Text of the file. */
  readonly text: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The account that may read the file. */
  readonly reader: { uid: number; gid: number } | null;
}

/** The account that a script runs as. */
export interface ScriptAccount extends LoginAccount {
  /** Path of setpriv(1), which changes to the account. */
  readonly setpriv: string;
}

type Execution = Pick<ResourceBodies['script'], 'program' | 'environment' | 'working_directory' | 'umask'>;

/** Interpreters that the agent accepts by name, without a path. */
export const shells: readonly string[] = ['sh', 'bash'];

const file = '/proc/self/fd/3';
const waitForStart = 'read -r REPLY <&4 || exit 125; unset REPLY;';
/**
 * Shell code that runs as root and then executes its arguments. Uses the agent's environment, because variables such as
 * PATH and LD_PRELOAD may name files of the script's user.
 */
const gate = `${waitForStart} exec 4<&-; exec "$@"`;
/** Variables that pass the declared variables to the script's account, each as `NAME=value`. */
const carrier = (index: number): string => `MUSTER_VARIABLE_${index}`;

/**
 * Returns shell code that runs as the script's account. Its arguments are the umask, the working directory, and the
 * command to execute.
 */
function enter(variables: number): string {
  const carriers = Array.from({ length: variables }, (_, index) => carrier(index));
  const exported = carriers.map((name) => `export "$${name}"; unset ${name}; `).join('');
  return `umask "$1"; cd -- "$2" || exit 1; shift 2; ${exported}exec "$@"`;
}

/**
 * Returns the command for a script.
 * @param account null to run as the agent's own account
 */
export function launchOf(script: Execution, text: string, account: ScriptAccount | null): Launch {
  const { program, working_directory: directory, umask } = script;
  const isShell = shells.includes(program);
  const given = { ...script.environment };
  if (isShell && account === null && directory == null && umask == null)
    // The preamble is on the first line, so that line numbers stay correct. Programs that the script starts cannot read
    // the text.
    return { program, args: [file], text: `${waitForStart} exec 3<&- 4<&-; ${text}`, environment: given, reader: null };
  const become =
    account === null
      ? []
      : [account.setpriv, '--reuid', `${account.uid}`, '--regid', `${account.gid}`, '--init-groups', '--'];
  const variables = Object.entries(account === null ? given : { ...identityOf(account), ...given });
  const entered = ['/bin/sh', '-c', enter(variables.length), 'sh', umask ?? '0022', directory ?? '/', program, file];
  return {
    program: '/bin/sh',
    args: ['-c', gate, 'sh', ...become, ...entered],
    text: isShell ? `exec 3<&-; ${text}` : text,
    environment: Object.fromEntries(variables.map(([name, value], index) => [carrier(index), `${name}=${value}`])),
    reader: account,
  };
}

const identityOf = ({ name, home, shell }: LoginAccount): Record<string, string> => ({
  HOME: home,
  USER: name,
  LOGNAME: name,
  SHELL: shell === '' ? '/bin/sh' : shell,
});
