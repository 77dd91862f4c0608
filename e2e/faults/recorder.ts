import { ApiError } from '@muster/protocol/client';
import type { ClientRequest, Entry, Refused, Succeeded, Unknown } from './history.ts';

type Outcome = Omit<Succeeded, 'at' | 'call'> | Omit<Refused, 'at' | 'call'> | Omit<Unknown, 'at' | 'call'>;

/** Error codes after which a request may have taken effect. */
const unclear = new Set(['outcome_unknown', 'internal', 'unexpected_answer', 'agent_timeout']);

/** Records a history while it happens. */
export class Recorder {
  readonly entries: Entry[] = [];
  readonly #began = performance.now();
  #calls = 0;

  /** Milliseconds since the start. */
  get now(): number {
    return performance.now() - this.#began;
  }

  record(...entries: readonly Entry[]): void {
    for (const entry of entries) this.entries.push(entry);
  }

  /**
   * Sends a request, and records it with its outcome.
   * @param answerOf returns the part of the answer to record
   * @returns the answer; null if there is none or the request was refused
   */
  async call<T>(
    client: string,
    replica: string,
    request: ClientRequest,
    send: () => Promise<T>,
    answerOf: (answer: T) => Pick<Succeeded, 'value' | 'id'> = () => ({}),
  ): Promise<T | null> {
    const call = ++this.#calls;
    this.record({ type: 'invoked', at: this.now, call, client, replica, request });
    try {
      const answer = await send();
      this.record({ at: this.now, call, type: 'succeeded', ...answerOf(answer) });
      return answer;
    } catch (error) {
      this.record({ at: this.now, call, ...outcomeOf(error) } as Entry);
      return null;
    }
  }
}

/** Returns the outcome of a request that threw. Internal errors are recorded as refusals, which the check reports. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof ApiError) {
    const { status, code, detail } = error.problem;
    // A bug after a write is answered with the code of an unknown outcome.
    if (detail?.endsWith('an internal error occurred.')) return { type: 'refused', status, code: 'internal' };
    if (code !== 'internal' && unclear.has(code)) return { type: 'unknown', reason: `${status} ${code}` };
    return { type: 'refused', status, code };
  }
  const { code, message } = error as NodeJS.ErrnoException;
  // The connection was refused before the request was sent.
  if (code === 'ECONNREFUSED') return { type: 'refused', status: 0, code };
  return { type: 'unknown', reason: code ?? message };
}
