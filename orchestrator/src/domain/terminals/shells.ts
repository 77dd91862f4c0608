/**
 * Shells on agents, as the domain asks the gateway for them. What a shell shows is held by a window: the agent sends no
 * more than `limits.terminalOutputWindowBytes` that were not given back by `taken`, and stops reading the shell then.
 */
export interface Shells {
  /**
   * Starts one on a connected agent. Nothing is told to `events` before this has resolved.
   * @throws MusterError terminal_disabled, terminal_limit, terminal_shell_refused, terminal_failed, agent_offline,
   *   agent_timeout
   */
  open(wish: ShellWish, events: ShellEvents): Promise<Shell>;
}

export interface ShellWish {
  readonly session_id: string;
  readonly node_id: string;
  readonly cols: number;
  readonly rows: number;
  /** Null: the one the agent is configured for. */
  readonly shell: string | null;
  /** Name of who opens it. */
  readonly operator: string;
}

/** What becomes of a shell. After `exited` or `lost`, one of which comes once, nothing comes any more. */
export interface ShellEvents {
  /** Bytes it showed. Whoever gets them owns them, and gives them back to the window by `Shell.taken`. */
  output(bytes: Uint8Array): void;
  /** There is room for what is typed, after `Shell.write` said that there is none. */
  writable(): void;
  /** It ended by itself, and everything it showed has been told. */
  exited(exit: ShellExit): void;
  /** Its agent is gone, or broke the protocol. @param reason for people */
  lost(reason: string): void;
}

export interface ShellExit {
  readonly code: number | null;
  /** Name of the signal that ended it. */
  readonly signal: string | null;
}

export interface Shell {
  /** The program, and the user it runs as. */
  readonly program: string;
  readonly user: string;
  /**
   * Types. What there is no room for is kept until there is.
   * @returns false when nothing more should be typed before `writable`
   */
  write(bytes: Uint8Array): boolean;
  resize(cols: number, rows: number): void;
  /** So many bytes of output are recorded and handed on, and need no memory any more. */
  taken(bytes: number): void;
  /** Ends it; no event comes after this. Does nothing when it has ended. */
  close(reason: string): void;
}
