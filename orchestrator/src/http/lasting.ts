import type { ServerResponse } from 'node:http';

const graceMs = 200;

/** Answers that are not whole yet, by who asked: whoever is removed gets none of what is still to come. */
export class LastingAnswers {
  readonly #byOperator = new Map<string, Set<ServerResponse>>();

  /** Until its connection is done with it. */
  add(operatorId: string, answer: ServerResponse): void {
    let answers = this.#byOperator.get(operatorId);
    if (!answers) {
      answers = new Set();
      this.#byOperator.set(operatorId, answers);
    }
    const of = answers;
    of.add(answer);
    answer.once('close', () => {
      of.delete(answer);
      if (of.size === 0 && this.#byOperator.get(operatorId) === of) this.#byOperator.delete(operatorId);
    });
  }

  /**
   * Ends the connections, so that nobody takes what came for the whole. Not at once: whoever removes itself is still told
   * so, and who was let in a moment before is among them by then.
   */
  cutOff(operatorId: string): void {
    const cut = () => {
      for (const answer of this.#byOperator.get(operatorId) ?? []) answer.destroy();
    };
    setTimeout(cut, graceMs).unref();
  }
}
