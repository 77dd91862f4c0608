/**
 * The gateway's interface for shells on agents. Output is flow-controlled: the agent sends at most
 * `limits.terminalOutputWindowBytes` that `taken` has not released, then stops reading the shell.
 */
export interface Shells {
  /**
   * Starts a shell on a connected agent. `events` is not called before this has resolved.
   * @throws MusterError terminal_disabled, terminal_limit, terminal_shell_refused, terminal_failed, agent_offline,
   * agent_timeout
   */
  open(wish: ShellWish, events: ShellEvents): Promise<Shell>;
}

export interface ShellWish {
  readonly session_id: string;
  readonly node_id: string;
  readonly cols: number;
  readonly rows: number;
  /** Null means the shell that the agent is configured for. */
  readonly shell: string | null;
  /** Username of the operator who opens the shell. */
  readonly operator: string;
}

/** Events of a shell. The last event is exactly one of `exited` and `lost`. */
export interface ShellEvents {
  /** Output. The receiver owns the bytes and releases them with `Shell.taken`. */
  output(bytes: Uint8Array): void;
  /** More input is accepted after `Shell.write` returned false. */
  writable(): void;
  /** The shell ended by itself, and all its output was delivered. */
  exited(exit: ShellExit): void;
  /** The agent disconnected, or violated the protocol. @param reason shown to operators */
  lost(reason: string): void;
}

export interface ShellExit {
  readonly code: number | null;
  /** Name of the signal that ended the shell. */
  readonly signal: string | null;
}

export interface Shell {
  /** The program, and the system user that runs it. */
  readonly program: string;
  readonly user: string;
  /**
   * Sends input. Input beyond the window is buffered.
   * @returns false when the caller should write no more before `writable`
   */
  write(bytes: Uint8Array): boolean;
  resize(cols: number, rows: number): void;
  /** Releases output that is recorded and shown. */
  taken(bytes: number): void;
  /** Ends the shell; no event follows. Does nothing when it has already ended. */
  close(reason: string): void;
}
