import { type ErrorCode, errorKinds, MusterError } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import { type Ask, type Asked, AskFailed, type AskFailure, type AskOptions, type Asks } from './asks.ts';
import type { Message } from './messages.ts';

/** Open questions from this process to other processes, and from other processes to this process. */

/** Maximum number of open questions from this process, and maximum number to it. */
const maxOpen = 1_000;
/** Maximum number of open questions from one other process. */
const maxOpenOfSender = 250;
/** The code with which a process refuses a question, without acting on it, because it does not know the sender yet. */
export const unknownSender = 'unknown_sender';

export interface AskDeskParts {
  /** Sends a message to a process. @returns false if it cannot be sent */
  send(to: string, message: Message): boolean;
  newId(): string;
  /** Its `now` is the time of the database server, on which all processes agree. */
  readonly clock: Clock;
  readonly log: Log;
}

type Answering = Extract<Message, { type: 'answer' | 'refusal' }>;

interface Open {
  readonly to: string;
  settle(message: Answering): void;
  fail(reason: AskFailure): void;
}

type Handler = (question: unknown, asked: Asked) => Promise<unknown>;

export class AskDesk implements Asks {
  readonly #parts: AskDeskParts;
  readonly #open = new Map<string, Open>();
  readonly #handlers = new Map<string, Handler>();
  /** The questions from other processes that are being answered. */
  readonly #answering = new Map<AbortController, string>();

  constructor(parts: AskDeskParts) {
    this.#parts = parts;
  }

  ask<Question, Answer>(
    to: string,
    { topic, answer }: Ask<Question, Answer>,
    question: Question,
    { milliseconds }: AskOptions,
  ): Promise<Answer> {
    const { clock, newId } = this.#parts;
    return new Promise((resolve, reject) => {
      if (this.#open.size >= maxOpen) return reject(new AskFailed('busy'));
      const id = newId();
      const end = () => {
        cancelTimer();
        this.#open.delete(id);
      };
      const cancelTimer = clock.after(milliseconds, () => {
        end();
        reject(new AskFailed('timeout'));
      });
      const fail = (reason: AskFailure) => {
        end();
        reject(new AskFailed(reason));
      };
      const settle = (message: Answering) => {
        end();
        if (message.type === 'refusal') return reject(errorOf(message));
        const checked = answer.safeParse(message.answer);
        if (checked.success) resolve(checked.data);
        else reject(new AskFailed('failed'));
      };
      this.#open.set(id, { to, settle, fail });
      const until = clock.now() + milliseconds;
      if (!this.#parts.send(to, { type: 'ask', id, topic, until, question })) fail('unreachable');
    });
  }

  answer<Question, Answer>(
    { topic, question: schema }: Ask<Question, Answer>,
    handler: (question: Question, asked: Asked) => Promise<Answer>,
  ): () => void {
    if (this.#handlers.has(topic)) throw new Error(`${topic} already has a handler`);
    this.#handlers.set(topic, async (question, asked) => handler(schema.parse(question), asked));
    return () => this.#handlers.delete(topic);
  }

  /** Accepts an answer, unless it is late or comes from a process other than the one that was asked. */
  answered(from: string, message: Answering): void {
    const open = this.#open.get(message.id);
    if (open?.to === from) open.settle(message);
  }

  /** Answers a question. Ignores it after its deadline, because the other process no longer waits for the answer. */
  async asked(from: string, { id, topic, until, question }: Extract<Message, { type: 'ask' }>): Promise<void> {
    const { clock, log, send } = this.#parts;
    const left = until - clock.now();
    if (left <= 0) return;
    const handler = this.#handlers.get(topic);
    if (handler === undefined || this.#isBusy(from)) {
      const detail = handler === undefined ? 'unknown kind of question' : 'too many open questions';
      send(from, { type: 'refusal', id, code: null, detail });
      return;
    }
    const aborting = new AbortController();
    const { signal } = aborting;
    const cancelTimer = clock.after(left, () => aborting.abort());
    this.#answering.set(aborting, from);
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    );
    try {
      // A handler may ignore the signal.
      const answer = await Promise.race([handler(question, { from, signal }), aborted]);
      send(from, { type: 'answer', id, answer });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof MusterError)) log.warn({ err: error, topic }, 'failed to answer another replica');
      const code = error instanceof MusterError ? error.code : null;
      send(from, { type: 'refusal', id, code, detail: code === null ? '' : (error as Error).message.slice(0, 10_000) });
    } finally {
      cancelTimer();
      this.#answering.delete(aborting);
    }
  }

  /** Fails the open questions of this process, because their answers would not arrive. */
  disconnected(): void {
    for (const open of [...this.#open.values()]) open.fail('disconnected');
  }

  close(): void {
    this.disconnected();
    for (const aborting of this.#answering.keys()) aborting.abort();
  }

  #isBusy(from: string): boolean {
    if (this.#answering.size >= maxOpen) return true;
    let count = 0;
    for (const sender of this.#answering.values()) if (sender === from) count++;
    return count >= maxOpenOfSender;
  }
}

function errorOf({ code, detail }: Extract<Message, { type: 'refusal' }>): Error {
  if (code === unknownSender) return new AskFailed('unreachable');
  return code !== null && Object.hasOwn(errorKinds, code)
    ? new MusterError(code as ErrorCode, detail)
    : new AskFailed('failed');
}
