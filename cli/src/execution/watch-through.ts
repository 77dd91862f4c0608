import { CliError, exits } from '../exit.ts';
import { type Explanation, explain } from '../transport/explain.ts';

/** Follows an operation or run on an orchestrator that may be unavailable for some time. */

/** Maximum time to wait for an unavailable orchestrator, in seconds. Long enough for a restart or an upgrade. */
const patienceSecs = 120;

/**
 * Reports whether an error is temporary: the orchestrator did not respond, is starting or stopping, or is rate-limiting
 * requests.
 */
function isTemporary({ code, status }: Explanation): boolean {
  return code === 'unreachable' || (status !== null && (status === 429 || [502, 503, 504].includes(status)));
}

export const goesOnText = (see: string, end: string | null): string =>
  `The plan or apply continues on the orchestrator. To see it: ${see}${end === null ? '' : `\nTo cancel it: ${end}`}`;

const advised = (error: unknown, { exit, code, message, remedy, errors }: Explanation, more: string): CliError =>
  new CliError(exit, code, message, [remedy, more].filter(Boolean).join('\n'), { faults: errors, cause: error });

/** Returns the error to report when following stops, with the commands that show and cancel the operation or run. */
export const followFailed = (error: unknown, see: string, end: string | null): CliError =>
  advised(error, explain(error), goesOnText(see, end));

/**
 * Returns the error that prevented the operation or run from starting. If only the response was lost, it may have
 * started.
 */
export function startFailed(error: unknown, see: string): unknown {
  const { code } = ((error as Error)?.cause ?? {}) as NodeJS.ErrnoException;
  if (
    !(error instanceof CliError) ||
    error.exit !== exits.unreachable ||
    !['ECONNRESET', 'ETIMEDOUT', 'EPIPE'].includes(code ?? '')
  )
    return error;
  return advised(error, explain(error), `The plan or apply may have started. To see it: ${see}`);
}

/** Measures for how long polls have failed with temporary errors. */
export class Patience {
  readonly #now: () => number;
  #since: number | null = null;

  /** @param now Unix seconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds since the last response; null while the orchestrator responds. */
  get lost(): number | null {
    return this.#since === null ? null : Math.max(0, this.#now() - this.#since);
  }

  /**
   * Records a failed poll.
   * @returns the message for the first of consecutive failures; null for later ones
   * @throws `error` if it is permanent or has lasted too long
   */
  failed(error: unknown): string | null {
    const explanation = explain(error);
    if (!isTemporary(explanation) || (this.lost ?? 0) > patienceSecs) throw error;
    if (this.#since !== null) return null;
    this.#since = this.#now();
    return explanation.message;
  }

  /**
   * Records a successful poll.
   * @returns true if the previous poll failed
   */
  answered(): boolean {
    const was = this.#since !== null;
    this.#since = null;
    return was;
  }
}
