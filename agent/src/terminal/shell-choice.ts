/** What the agent's configuration says of terminals. */
export interface TerminalSettings {
  readonly enabled: boolean;
  /** Empty: the login shell of the user. */
  readonly shell: string;
  readonly allow_operator_shell_override: boolean;
  readonly max_sessions: number;
  /** Empty: the user that the agent runs as. */
  readonly user: string;
}

export interface Machine {
  isProgram(path: string): boolean;
  /** Of /etc/shells. */
  listedShells(): readonly string[];
}

export type Choice =
  | { readonly shell: string }
  | { readonly code: 'shell_refused' | 'failed'; readonly message: string };

/**
 * Which shell runs.
 * @param wish of the operator; null: none
 * @param login shell of the account; empty: the system's own
 */
export function chooseShell(wish: string | null, login: string, settings: TerminalSettings, machine: Machine): Choice {
  if (wish === null) {
    const shell = settings.shell || login || '/bin/sh';
    if (shell.startsWith('/') && machine.isProgram(shell)) return { shell };
    return {
      code: 'failed',
      message: `${shell} ${settings.shell === '' ? 'is the login shell of the user and' : 'stands in remote_terminal.shell of the agent and'} is not the absolute path of a program on this machine`,
    };
  }
  if (!settings.allow_operator_shell_override) {
    const message = 'this agent does not let the shell be chosen: remote_terminal.allow_operator_shell_override';
    return { code: 'shell_refused', message };
  }
  if (!machine.listedShells().includes(wish))
    return {
      code: 'shell_refused',
      message: `${printable(wish)} is not in /etc/shells of this machine: choose one of ${machine.listedShells().join(', ').slice(0, 500)}`,
    };
  if (!machine.isProgram(wish))
    return { code: 'shell_refused', message: `${printable(wish)} is not a program on this machine` };
  return { shell: wish };
}

const printable = (text: string): string => JSON.stringify(text);
