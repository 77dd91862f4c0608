import type { MusterError } from '@muster/protocol';
import type { z } from 'zod';

/** Questions from one process to another on the same database, with an answer before a deadline. */

/**
 * A kind of question. Both sides check received values against its schemas. The schemas must accept unknown fields, which
 * newer replicas may send during an update.
 */
export interface Ask<Question, Answer> {
  /** Unique name, such as `link/probe`. */
  readonly topic: string;
  readonly question: z.ZodType<Question>;
  readonly answer: z.ZodType<Answer>;
}

export interface AskOptions {
  /** Milliseconds until the answer must arrive. The other process then stops its work on the question. */
  readonly milliseconds: number;
}

/** The process that asked, and the deadline. */
export interface Asked {
  /** Incarnation of the process that asked. */
  readonly from: string;
  /** Aborted at the deadline, and when the bus closes. */
  readonly signal: AbortSignal;
}

export interface Asks {
  /**
   * Asks another process. The question is delivered at most once. Without an answer, it is unknown whether the other
   * process acted on it.
   * @param to incarnation of the other process
   * @throws AskFailed, or the MusterError with which the other process refuses
   */
  ask<Question, Answer>(
    to: string,
    ask: Ask<Question, Answer>,
    question: Question,
    options: AskOptions,
  ): Promise<Answer>;
  /**
   * Answers questions of one kind. A kind has one handler.
   * @param handler may throw a MusterError, which is returned to the process that asked
   * @returns a function that removes the handler
   */
  answer<Question, Answer>(
    ask: Ask<Question, Answer>,
    handler: (question: Question, asked: Asked) => Promise<Answer>,
  ): () => void;
}

/**
 * - `unreachable`: this process has no connection to the other process.
 * - `disconnected`: the connection was lost before an answer arrived.
 * - `timeout`: no answer arrived before the deadline.
 * - `busy`: too many questions are open.
 * - `failed`: the other process does not know the kind of question, or failed to answer.
 */
export type AskFailure = 'unreachable' | 'disconnected' | 'timeout' | 'busy' | 'failed';

const descriptions: Record<AskFailure, string> = {
  unreachable: 'the other replica cannot be reached',
  disconnected: 'the other replica disconnected before it answered',
  timeout: 'the other replica did not answer in time',
  busy: 'too many questions to other replicas are open',
  failed: 'the other replica failed to answer',
};

/** The question was not answered. A refusal by the other process is a {@link MusterError} instead. */
export class AskFailed extends Error {
  readonly reason: AskFailure;

  constructor(reason: AskFailure) {
    super(descriptions[reason]);
    this.name = 'AskFailed';
    this.reason = reason;
  }

  /** Whether the other process may have acted on the question. */
  get isOutcomeUnknown(): boolean {
    return this.reason === 'timeout' || this.reason === 'disconnected';
  }
}
