import { CliError, exits } from '../exit.ts';
import { type Explanation, explain } from '../transport/explain.ts';

/** Looking on at what goes on by itself on an orchestrator, while that may be away for some time. */

/** So long it may be away before nobody waits for it any more: it starts again, or is upgraded. Seconds. */
const patienceSecs = 120;

/** What may be gone at the next look: nobody answers, it stops or is just starting, it is asked too often. */
function mayPass({ code, status }: Explanation): boolean {
  return code === 'unreachable' || (status !== null && (status === 429 || [502, 503, 504].includes(status)));
}

/** How it is seen and ended by whoever does not look on any more. */
export const goesOnText = (see: string, end: string | null): string =>
  `It goes on without you; see: ${see}${end === null ? '' : `\nTo end it: ${end}`}`;

const advised = (error: unknown, { exit, code, message, remedy, errors }: Explanation, more: string): CliError =>
  new CliError(exit, code, message, [remedy, more].filter(Boolean).join('\n'), { faults: errors, cause: error });

/** Why looking on ended before the work did, with how to go on looking. */
export const leftGoing = (error: unknown, see: string, end: string | null): CliError =>
  advised(error, explain(error), goesOnText(see, end));

/** Why work was not begun; where the answer alone was lost, it may have been. */
export function notBegun(error: unknown, see: string): unknown {
  const { code } = ((error as Error)?.cause ?? {}) as NodeJS.ErrnoException;
  if (
    !(error instanceof CliError) ||
    error.exit !== exits.unreachable ||
    !['ECONNRESET', 'ETIMEDOUT', 'EPIPE'].includes(code ?? '')
  )
    return error;
  return advised(error, explain(error), `It may have begun all the same; see: ${see}`);
}

/** Counts how long looks have failed that may work again. */
export class Patience {
  readonly #now: () => number;
  #since: number | null = null;

  /** @param now Unix seconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds since it answered; null: it does. */
  get lost(): number | null {
    return this.#since === null ? null : Math.max(0, this.#now() - this.#since);
  }

  /** @returns why, the first time in a row; null later @throws `error` when it will not pass, or has lasted too long */
  failed(error: unknown): string | null {
    const told = explain(error);
    if (!mayPass(told) || (this.lost ?? 0) > patienceSecs) throw error;
    if (this.#since !== null) return null;
    this.#since = this.#now();
    return told.message;
  }

  /** @returns true when it had not answered before */
  answered(): boolean {
    const was = this.#since !== null;
    this.#since = null;
    return was;
  }
}
