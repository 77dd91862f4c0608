/** The `remote_terminal` section of the agent's configuration. */
export interface TerminalSettings {
  readonly enabled: boolean;
  /** Path of the shell; empty for the user's login shell. */
  readonly shell: string;
  readonly allow_operator_shell_override: boolean;
  readonly max_sessions: number;
  /** Name of the user; empty for the user that the agent runs as. */
  readonly user: string;
}

export interface Machine {
  isProgram(path: string): boolean;
  /** Returns the shells in /etc/shells. */
  listedShells(): readonly string[];
}

export type Choice =
  | { readonly shell: string }
  | { readonly code: 'shell_refused' | 'failed'; readonly message: string };

/**
 * Chooses the shell of a terminal.
 * @param requested the shell that the operator requested; null if none
 * @param login the login shell of the account; empty for the system's default
 */
export function chooseShell(
  requested: string | null,
  login: string,
  settings: TerminalSettings,
  machine: Machine,
): Choice {
  if (requested === null) {
    const shell = settings.shell || login || '/bin/sh';
    if (shell.startsWith('/') && machine.isProgram(shell)) return { shell };
    return {
      code: 'failed',
      message: `${shell}, ${settings.shell === '' ? 'the login shell of the user,' : 'set in remote_terminal.shell of the agent,'} is not the absolute path of a program on this machine`,
    };
  }
  if (!settings.allow_operator_shell_override) {
    const message = 'this agent does not allow choosing the shell; see remote_terminal.allow_operator_shell_override';
    return { code: 'shell_refused', message };
  }
  if (!machine.listedShells().includes(requested))
    return {
      code: 'shell_refused',
      message: `${printable(requested)} is not in this machine's /etc/shells; choose one of ${machine.listedShells().join(', ').slice(0, 500)}`,
    };
  if (!machine.isProgram(requested))
    return { code: 'shell_refused', message: `${printable(requested)} is not a program on this machine` };
  return { shell: requested };
}

const printable = (text: string): string => JSON.stringify(text);
