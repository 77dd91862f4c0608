/**
 * The domain's interface to shells on agents, implemented by the gateway. Output is flow-controlled: the agent sends at
 * most `limits.terminalOutputWindowBytes` that `taken` has not released, then stops reading from the shell.
 */
export interface Shells {
  /**
   * Starts a shell on a connected agent. `events` is called only after the returned promise has resolved.
   * @throws MusterError terminal_disabled, terminal_limit, terminal_shell_refused, terminal_failed, agent_offline,
   * agent_timeout
   */
  open(options: ShellOptions, events: ShellEvents): Promise<Shell>;
}

export interface ShellOptions {
  readonly session_id: string;
  readonly node_id: string;
  readonly cols: number;
  readonly rows: number;
  /** The shell to run; null for the shell in the agent's configuration. */
  readonly shell: string | null;
  /** Username of the operator who opens the shell. */
  readonly operator: string;
}

/** Shell events. The last event is either `exited` or `lost`. */
export interface ShellEvents {
  /** Receives output. The receiver owns the bytes, and releases them with `Shell.taken`. */
  output(bytes: Uint8Array): void;
  /** Reports that the shell accepts input again, after `Shell.write` returned false. */
  writable(): void;
  /** Called if the shell exits by itself, after all its output was delivered. */
  exited(exit: ShellExit): void;
  /**
   * Called if the agent disconnects or violates the protocol.
   * @param reason displayed to operators
   */
  lost(reason: string): void;
}

export interface ShellExit {
  readonly code: number | null;
  /** Name of the signal that terminated the shell, such as `SIGKILL`. */
  readonly signal: string | null;
}

export interface Shell {
  /** The program that runs as the shell, and the system user that runs it. */
  readonly program: string;
  readonly user: string;
  /**
   * Sends input. Input beyond the window is buffered.
   * @returns false if the caller must wait for `writable` before writing more
   */
  write(bytes: Uint8Array): boolean;
  resize(cols: number, rows: number): void;
  /** Releases output that was recorded and shown. */
  taken(bytes: number): void;
  /** Terminates the shell, without causing an event. Has no effect if the shell has already exited. */
  close(reason: string): void;
}
