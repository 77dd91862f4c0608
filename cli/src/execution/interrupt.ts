import type { Context } from '../context/context.ts';
import { goesOnText } from './watch-through.ts';

/** What goes on by itself on the orchestrator, while somebody here looks on. */
interface Work {
  /** How it is seen later: `muster runs show 01K…`; asked for when it is needed, for the id comes with the answer. */
  see: () => string;
  /** How it is ended later; null: there is nothing to end yet. */
  end: () => string | null;
  /** Ends it; null: it changes nothing, and need not be ended. */
  cancel: (() => Promise<void>) | null;
  /** Stops drawing while a question is on the screen, and goes on. */
  pause: () => void;
  resume: () => void;
}

/**
 * Ctrl-C while something goes on: a person is asked whether to leave it running, to cancel it, or to go on watching; a
 * second Ctrl-C leaves. Where nobody can be asked it is left running, and told how to see and to end it.
 * @returns ends this, and a question that is still open
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
      'It goes on by itself when you leave. What now?',
      [
        { value: 'leave', label: 'Leave it running' },
        { value: 'cancel', label: 'Cancel it' },
        { value: 'watch', label: 'Go on watching' },
      ],
      over,
    );
    question = null;
    // It has ended meanwhile: there is nothing to choose any more.
    if (over.aborted) return;
    if (answer === 'cancel') {
      isCancelled = true;
      await cancel();
      out.note('Cancelling: who is at work ends after the resource it is at.');
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
        out.warn(`it cannot be cancelled: ${error.message}`);
      });
      return 'stay';
    }
    // The question gives the terminal back first.
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
