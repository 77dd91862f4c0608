import type { Client } from '@muster/protocol/client';
import type { Environment } from '../directories.ts';
import type { OperatorKey } from '../keys/key.ts';
import type { Prompter } from '../keys/prompt.ts';
import type { LocalTerminal } from '../terminal/local-terminal.ts';
import type { AgentFor } from '../transport/client.ts';
import type { Session } from '../transport/session.ts';
import type { Output } from './output.ts';
import type { Target, TargetOptions } from './profile.ts';

/**
 * Handles an interrupt.
 * @param leave exits the program later, as Ctrl-C would
 * @returns `stay` to keep the program running
 */
export type Interrupted = (leave: () => void) => 'stay' | undefined;

/** A command's environment. Commands do not access the process directly. */
export interface Context {
  readonly env: Environment;
  readonly out: Output;
  readonly prompt: Prompter;
  readonly options: TargetOptions;
  /** Unix seconds. */
  readonly now: () => number;
  /** Resolves early if the program is about to exit. */
  readonly sleep: (milliseconds: number) => Promise<void>;
  readonly stdin: (how?: {
    /** Whether to fail if the terminal would echo a typed secret. */ unseen?: boolean;
  }) => Promise<string>;
  /** Opens the program's terminal or pipes. May be called at most once per process. */
  readonly terminal: () => Promise<LocalTerminal>;
  /**
   * Calls `say` on Ctrl-C before the program exits. If `say` returns `stay`, the program continues.
   * @returns a function that removes the handler
   */
  readonly onInterrupt: (say: Interrupted) => () => void;
  /** Connects to the orchestrator on the first call. */
  connect(): Promise<Connection>;
  key(): Promise<OperatorKey>;
  target(): Promise<Target>;
  close(): void;
}

export interface Connection {
  readonly target: Target;
  readonly call: Client;
  readonly session: Session;
  /** Creates the HTTP agent for a WebSocket to the orchestrator, with the same certificate check as for requests. */
  readonly agentFor: AgentFor;
}

export type Parts = Pick<
  Context,
  'env' | 'out' | 'prompt' | 'options' | 'now' | 'sleep' | 'stdin' | 'terminal' | 'onInterrupt'
>;
