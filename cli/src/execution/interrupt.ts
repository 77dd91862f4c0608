import type { Context } from '../context/context.ts';
import { goesOnText } from './watch-through.ts';

/** Work that continues on the orchestrator while this program shows it. */
interface Work {
  /**
   * The command that shows it later, e.g. `muster runs show 01K…`. A function, since the id arrives with the first
   * answer.
   */
  see: () => string;
  /** The command that cancels it later; null before it has started. */
  end: () => string | null;
  /** Cancels it; null for work that changes nothing. */
  cancel: (() => Promise<void>) | null;
  /** Pauses drawing while a question is on the screen. */
  pause: () => void;
  resume: () => void;
}

/**
 * Handles Ctrl-C during work: asks whether to leave it running, cancel it, or keep watching. A second Ctrl-C exits.
 * Without a terminal the work stays running, and the commands to see and cancel it are printed.
 * @returns a function that removes this handler and closes an open question
 */
export function onCtrlC(context: Pick<Context, 'out' | 'prompt' | 'onInterrupt'>, work: Work): () => void {
  const { out, prompt } = context;
  let question: AbortController | null = null;
  let isCancelled = false;
  const tell = () => {
    out.note(goesOnText(work.see(), work.end()));
  };
  const ask = async (cancel: () => Promise<void>, leave: () => void) => {
    question = new AbortController();
    const over = question.signal;
    work.pause();
    const answer = await prompt.choose(
      'The work continues if you leave. What do you want to do?',
      [
        { value: 'leave', label: 'Leave it running' },
        { value: 'cancel', label: 'Cancel it' },
        { value: 'watch', label: 'Keep watching' },
      ],
      over,
    );
    question = null;
    // The work ended while the question was open.
    if (over.aborted) return;
    if (answer === 'cancel') {
      isCancelled = true;
      await cancel();
      out.note('Cancelling. Each agent stops after its current resource.');
      work.resume();
    } else if (answer === 'watch') work.resume();
    else {
      tell();
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
    tell();
    return undefined;
  });
  return () => {
    question?.abort();
    release();
  };
}
