import type { ServerResponse } from 'node:http';

const graceMs = 200;

/**
 * What happens to an open response when its session ends: it is aborted immediately; it is aborted after the grace
 * period; or it is completed, because it confirms that the session has ended.
 */
export type OnSessionEnd = 'abort' | 'abort-after-grace' | 'complete';

interface OpenResponse {
  readonly answer: ServerResponse;
  readonly operatorId: string;
  /** Token hash of the session that sent the request, or of the session that replaced it. */
  tokenHash: string;
  readonly onSessionEnd: OnSessionEnd;
}

/** Tracks open responses, and aborts them when the operator's session ends. */
export class StreamingResponses {
  readonly #byOperator = new Map<string, Set<OpenResponse>>();

  /** Tracks a response until it is finished. */
  add(
    { operator_id, token_hash }: { readonly operator_id: string; readonly token_hash: string },
    answer: ServerResponse,
    onSessionEnd: OnSessionEnd,
  ): void {
    const one: OpenResponse = { answer, operatorId: operator_id, tokenHash: token_hash, onSessionEnd };
    let answers = this.#byOperator.get(operator_id);
    if (!answers) {
      answers = new Set();
      this.#byOperator.set(operator_id, answers);
    }
    const of = answers;
    of.add(one);
    answer.once('close', () => {
      of.delete(one);
      if (of.size === 0 && this.#byOperator.get(operator_id) === of) this.#byOperator.delete(operator_id);
    });
  }

  /** Closes a removed operator's connections. If only the responses ended, partial responses would look complete. */
  cutOff(operatorId: string): void {
    this.#cut(() => this.#byOperator.get(operatorId) ?? []);
  }

  /**
   * Closes the connections of an ended session.
   * @param renewedAs token hash of the session that replaces the ended one and takes over its responses; null if there
   *   is none
   */
  sessionEnded(tokenHash: string, renewedAs: string | null): void {
    const those = [...this.#byOperator.values()].flatMap((answers) =>
      [...answers].filter((one) => one.tokenHash === tokenHash),
    );
    if (renewedAs === null) this.#cut(() => those);
    else for (const one of those) one.tokenHash = renewedAs;
  }

  #cut(which: () => Iterable<OpenResponse>): void {
    const abort = (...when: readonly OnSessionEnd[]) => {
      for (const { answer, onSessionEnd } of which()) if (when.includes(onSessionEnd)) answer.destroy();
    };
    abort('abort');
    setTimeout(() => abort('abort', 'abort-after-grace'), graceMs).unref();
  }
}
