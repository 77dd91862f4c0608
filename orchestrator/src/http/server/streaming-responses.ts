import type { ServerResponse } from 'node:http';

const graceMs = 200;

interface Lasting {
  readonly answer: ServerResponse;
  readonly operatorId: string;
  /** Of the session that asked; another one once that was renewed. */
  tokenHash: string;
  readonly endsByItself: boolean;
}

/** Answers that are not whole yet: what is still to come of them is not for an operator whose session has ended. */
export class LastingAnswers {
  readonly #byOperator = new Map<string, Set<Lasting>>();

  /**
   * Until its connection is done with it.
   * @param endsByItself nothing of the operator's comes after the end of the session, so it is not cut off at once
   */
  add(
    { operator_id, token_hash }: { readonly operator_id: string; readonly token_hash: string },
    answer: ServerResponse,
    endsByItself: boolean,
  ): void {
    const one: Lasting = { answer, operatorId: operator_id, tokenHash: token_hash, endsByItself };
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

  /** Ends the connections of an operator who was removed, so that no client takes the part it got for the whole. */
  cutOff(operatorId: string): void {
    this.#cut(() => this.#byOperator.get(operatorId) ?? []);
  }

  /** The same for one session that was ended. @param renewedAs its answers go on under this one */
  sessionEnded(tokenHash: string, renewedAs: string | null): void {
    const those = [...this.#byOperator.values()].flatMap((answers) =>
      [...answers].filter((one) => one.tokenHash === tokenHash),
    );
    if (renewedAs === null) this.#cut(() => those);
    else for (const one of those) one.tokenHash = renewedAs;
  }

  #cut(which: () => Iterable<Lasting>): void {
    for (const { answer, endsByItself } of which()) if (!endsByItself) answer.destroy();
    setTimeout(() => {
      for (const { answer } of which()) answer.destroy();
    }, graceMs).unref();
  }
}
