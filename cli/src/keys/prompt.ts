import type { Readable } from 'node:stream';
import { CliError, exits } from '../exit.ts';

/** Asks questions on a terminal. Writes to standard error, because standard output is for data. */
export interface Prompter {
  /** Whether there is a terminal for asking questions. */
  readonly interactive: boolean;
  confirm(question: string): Promise<boolean>;
  /**
   * Asks for a line of text.
   * @param initial the answer if the operator only presses Enter
   */
  ask(question: string, initial: string, fault: (answer: string) => string | undefined): Promise<string>;
  /**
   * Asks for one of several choices.
   * @param choices the first one is the answer if the operator only presses Enter
   * @returns the choice; null after Ctrl-C, or if `over` is aborted
   */
  choose<C extends string>(
    question: string,
    choices: readonly { value: C; label: string }[],
    over: AbortSignal,
  ): Promise<C | null>;
  /** Asks for a secret. Shows neither the answer nor its length. */
  secret(question: string): Promise<string>;
}

/**
 * Creates a prompter.
 * @param input returns standard input, which takes several milliseconds to open
 * @param onQuestion called before each question with a function that closes the question and restores the terminal;
 *   returns a function that is called after the question
 */
export function createPrompter(
  input: () => Readable & { isTTY?: boolean | undefined },
  output: NodeJS.WritableStream & { isTTY?: boolean | undefined },
  onQuestion: (giveBack: () => void) => () => void,
): Prompter {
  const streams = () => ({ input: input(), output: output as import('node:stream').Writable, withGuide: false });
  const cancelled = () => new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
  const asking = async <A>(ask: (signal: AbortSignal) => Promise<A>): Promise<A> => {
    const ending = new AbortController();
    const over = onQuestion(() => ending.abort());
    try {
      return await ask(ending.signal);
    } finally {
      over();
    }
  };
  return {
    get interactive() {
      return output.isTTY === true && input().isTTY === true;
    },
    async confirm(question) {
      const { confirm, isCancel } = await import('@clack/prompts');
      const answer = await asking((signal) =>
        confirm({ ...streams(), signal, message: question, initialValue: false }),
      );
      if (isCancel(answer)) throw cancelled();
      return answer;
    },
    async ask(question, initial, fault) {
      const { text, isCancel } = await import('@clack/prompts');
      const answer = await asking((signal) =>
        text({
          ...streams(),
          signal,
          message: question,
          initialValue: initial,
          validate: (value) => fault(value ?? ''),
        }),
      );
      if (isCancel(answer)) throw cancelled();
      return answer;
    },
    async choose(question, choices, over) {
      const { select, isCancel } = await import('@clack/prompts');
      const options = choices.map(({ value, label }) => ({ value: value as string, label }));
      const answer = await asking((signal) =>
        select({ ...streams(), message: question, options, signal: AbortSignal.any([signal, over]) }),
      );
      return isCancel(answer) ? null : (choices.find(({ value }) => value === answer)?.value ?? null);
    },
    async secret(question) {
      const { password, isCancel } = await import('@clack/prompts');
      const answer = await asking((signal) => password({ ...streams(), signal, message: question, mask: '' }));
      if (isCancel(answer)) throw cancelled();
      return answer;
    },
  };
}
