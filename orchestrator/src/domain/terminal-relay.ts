import { MusterError } from '@muster/protocol';

/**
 * Where the bytes of terminals go: what the domain asks of it. The rows say which sessions there are and whose they are;
 * the relay holds the shells on the agents, and the connections to them.
 */
export interface TerminalRelay {
  /**
   * Starts a shell on a connected agent.
   * @throws MusterError terminal_disabled, terminal_limit, terminal_shell_refused, agent_offline, agent_timeout
   */
  open(terminal: {
    session_id: string;
    node_id: string;
    cols: number;
    rows: number;
    shell: string | null;
  }): Promise<void>;
  /** Ends the shell and every connection to it; nothing when there is none. */
  close(sessionId: string): void;
  /** Connections to it now. */
  viewers(sessionId: string): number;
}

/** For agents that offer no terminals, which is every agent of this release. */
export const noTerminals: TerminalRelay = {
  open: async () => {
    throw new MusterError('terminal_disabled', 'the agent does not offer terminals: its release has none');
  },
  close: () => {},
  viewers: () => 0,
};
