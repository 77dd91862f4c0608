import type { Client } from '@muster/protocol/client';
import type { Environment } from '../directories.ts';
import type { OperatorKey } from '../keys/key.ts';
import type { Prompter } from '../keys/prompt.ts';
import type { LocalTerminal } from '../terminal/local-terminal.ts';
import type { AgentFor } from '../transport/client.ts';
import type { Session } from '../transport/session.ts';
import type { Output } from './output.ts';
import type { Target, TargetOptions } from './profile.ts';

/** @returns `stay`: the program goes on, and `leave` ends it later as Ctrl-C would have */
export type Interrupted = (leave: () => void) => 'stay' | undefined;

/** Everything a verb is handed: nothing in it reaches for the process. */
export interface Context {
  readonly env: Environment;
  readonly out: Output;
  readonly prompt: Prompter;
  readonly options: TargetOptions;
  /** Unix seconds. */
  readonly now: () => number;
  /** Waits, or is cut short by the end of the program. */
  readonly sleep: (milliseconds: number) => Promise<void>;
  readonly stdin: (how?: { /** Never typed where it shows. */ unseen?: boolean }) => Promise<string>;
  /** The terminal, or the pipes, that the program was started on, to be held by a verb until its end. */
  readonly terminal: () => Promise<LocalTerminal>;
  /**
   * Does something when Ctrl-C is typed, before that ends the program; or keeps it from that.
   * @returns what takes that back
   */
  readonly onInterrupt: (say: Interrupted) => () => void;
  /** The orchestrator, connected to when first called. */
  connect(): Promise<Connection>;
  /** The operator key that is in use. */
  key(): Promise<OperatorKey>;
  target(): Promise<Target>;
  close(): void;
}

export interface Connection {
  readonly target: Target;
  readonly call: Client;
  readonly session: Session;
  /** What a WebSocket to the orchestrator goes over: the certificate is judged as for requests. */
  readonly agentFor: AgentFor;
}

export type Parts = Pick<
  Context,
  'env' | 'out' | 'prompt' | 'options' | 'now' | 'sleep' | 'stdin' | 'terminal' | 'onInterrupt'
>;
