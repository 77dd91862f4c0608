import type { Client } from '@muster/protocol/client';
import type { Environment } from '../directories.ts';
import type { OperatorKey } from '../keys/key.ts';
import type { Prompter } from '../keys/prompt.ts';
import type { LocalTerminal } from '../terminal/local-terminal.ts';
import type { AgentFor } from '../transport/client.ts';
import type { Session } from '../transport/session.ts';
import type { Output } from './output.ts';
import type { Target, TargetOptions } from './profile.ts';

/** @returns `stay` to keep the program running; `leave` then ends it later as Ctrl-C would */
export type Interrupted = (leave: () => void) => 'stay' | undefined;

/** The environment of a verb, so that verbs do not use the process directly. */
export interface Context {
  readonly env: Environment;
  readonly out: Output;
  readonly prompt: Prompter;
  readonly options: TargetOptions;
  /** Unix seconds. */
  readonly now: () => number;
  /** Ends early when the program ends. */
  readonly sleep: (milliseconds: number) => Promise<void>;
  readonly stdin: (how?: { /** Fails if a typed secret would be echoed. */ unseen?: boolean }) => Promise<string>;
  /** The program's terminal or pipes, held by one verb. */
  readonly terminal: () => Promise<LocalTerminal>;
  /**
   * Calls `say` on Ctrl-C, before the program ends; its result may prevent the end.
   * @returns a function that removes the handler
   */
  readonly onInterrupt: (say: Interrupted) => () => void;
  /** The orchestrator; connects at the first call. */
  connect(): Promise<Connection>;
  /** The operator key in use. */
  key(): Promise<OperatorKey>;
  target(): Promise<Target>;
  close(): void;
}

export interface Connection {
  readonly target: Target;
  readonly call: Client;
  readonly session: Session;
  /** The agent for a WebSocket to the orchestrator, with the same certificate check as requests. */
  readonly agentFor: AgentFor;
}

export type Parts = Pick<
  Context,
  'env' | 'out' | 'prompt' | 'options' | 'now' | 'sleep' | 'stdin' | 'terminal' | 'onInterrupt'
>;
