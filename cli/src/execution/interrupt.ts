import type { Context } from '../context/context.ts';
import { goesOnText } from './watch-through.ts';

/** An operation or run, which continues without this program. */
interface Work {
  /**
   * Returns the command that shows the operation or run, such as `muster runs show 01K…`. The ID is known after the
   * first response.
   */
  see: () => string;
  /** Returns the command that cancels the operation or run; null before it has started. */
  end: () => string | null;
  /** Cancels the operation or run; null for a plan, which needs no cancellation. */
  cancel: (() => Promise<void>) | null;
  /** Pauses drawing while a question is on the screen. */
  pause: () => void;
  resume: () => void;
}

/**
 * Handles Ctrl-C during an operation or run: asks whether to leave it running, cancel it, or keep watching. A second
 * Ctrl-C exits. Without a terminal, leaves it running, and prints the commands that show and cancel it.
 * @returns a function that removes the handler and closes an open question
 */
export function onCtrlC(context: Pick<Context, 'out' | 'prompt' | 'onInterrupt'>, work: Work): () => void {
  const { out, prompt } = context;
  let question: AbortController | null = null;
  let isCancelled = false;
  const noteCommands = () => {
    out.note(goesOnText(work.see(), work.end()));
  };
  const ask = async (cancel: () => Promise<void>, leave: () => void) => {
    question = new AbortController();
    const over = question.signal;
    work.pause();
    const answer = await prompt.choose(
      'The plan or apply continues if you leave. What do you want to do?',
      [
        { value: 'leave', label: 'Leave it running' },
        { value: 'cancel', label: 'Cancel it' },
        { value: 'watch', label: 'Keep watching' },
      ],
      over,
    );
    question = null;
    // The operation or run finished while the question was open.
    if (over.aborted) return;
    if (answer === 'cancel') {
      isCancelled = true;
      await cancel();
      out.note('Canceling. Each agent stops after its current resource.');
      work.resume();
    } else if (answer === 'watch') work.resume();
    else {
      noteCommands();
      leave();
    }
  };
  const release = context.onInterrupt((leave) => {
    const { cancel } = work;
    if (
      cancel !== null &&
      prompt.interactive &&
      !out.json &&
      !isCancelled &&
      question === null &&
      work.end() !== null
    ) {
      ask(cancel, leave).catch((error: Error) => {
        work.resume();
        out.warn(`failed to cancel: ${error.message}`);
      });
      return 'stay';
    }
    // Closing the question restores the terminal.
    question?.abort();
    work.pause();
    noteCommands();
    return undefined;
  });
  return () => {
    question?.abort();
    release();
  };
}
