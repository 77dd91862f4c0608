import type { ServerResponse } from 'node:http';

const graceMs = 200;

interface OpenResponse {
  readonly answer: ServerResponse;
  readonly operatorId: string;
  /** Token hash of the session that sent the request, or of the one that renewed it. */
  tokenHash: string;
  readonly endsByItself: boolean;
}

/** Tracks open responses, and aborts them when the operator's session ends. */
export class StreamingResponses {
  readonly #byOperator = new Map<string, Set<OpenResponse>>();

  /**
   * Tracks a response until it is finished.
   * @param endsByItself whether the response itself sends no data after the end of the session, so that it is not
   * aborted
   */
  add(
    { operator_id, token_hash }: { readonly operator_id: string; readonly token_hash: string },
    answer: ServerResponse,
    endsByItself: boolean,
  ): void {
    const one: OpenResponse = { answer, operatorId: operator_id, tokenHash: token_hash, endsByItself };
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

  /**
   * Closes the connections of a removed operator. Ending only the responses would make partial answers look complete.
   */
  cutOff(operatorId: string): void {
    this.#cut(() => this.#byOperator.get(operatorId) ?? []);
  }

  /**
   * Closes the connections of an ended session.
   * @param renewedAs token hash of the session that renewed it, under which the responses continue; null if none
   */
  sessionEnded(tokenHash: string, renewedAs: string | null): void {
    const those = [...this.#byOperator.values()].flatMap((answers) =>
      [...answers].filter((one) => one.tokenHash === tokenHash),
    );
    if (renewedAs === null) this.#cut(() => those);
    else for (const one of those) one.tokenHash = renewedAs;
  }

  #cut(which: () => Iterable<OpenResponse>): void {
    for (const { answer, endsByItself } of which()) if (!endsByItself) answer.destroy();
    setTimeout(() => {
      for (const { answer } of which()) answer.destroy();
    }, graceMs).unref();
  }
}
