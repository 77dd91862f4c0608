import { type Context, createContext, Script } from 'node:vm';
import { HostFailure } from './failure.ts';

/** Milliseconds of the processor for all lines of one look. A sane pattern takes a few for the largest file that is read. */
const patience = 400;
/** How much longer the first attempt may go on by the clock: what it waits for the processor is not what it takes of it. */
const margin = 1.1;

let context: Context | null = null;
const script = new Script('run()');

/**
 * Which of these texts a regular expression matches, within a time that does not depend on how it is written: one that
 * backtracks for ever is cut off, so that it cannot hold up an agent. What counts is the time of the processor, so that
 * the answer does not depend either on how busy the machine is: a plan and its apply must get the same.
 * @param pattern with the u flag
 * @throws HostFailure when it takes too long or cannot be matched at all; the message holds neither pattern nor text
 */
export function matching(pattern: string, texts: Iterable<string>, milliseconds = patience): boolean[] {
  const all = [...texts];
  // It can only be cut off by the clock. What did not get the processor meanwhile begins again, with more time.
  for (let timeout = Math.ceil(milliseconds * margin); ; timeout *= 2) {
    const before = process.threadCpuUsage();
    const { matches, isDone } = attempt(pattern, all, timeout);
    if (isDone) return matches;
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= milliseconds * 1000)
      throw new HostFailure(
        `its \`match\` took longer than ${milliseconds} ms of the processor and was stopped at line ${matches.length + 1}: write it without a repetition inside a repetition, or of things that can match the same text`,
      );
  }
}

/**
 * @param timeout milliseconds by the clock
 * @returns the answers, or those up to where it was cut off
 */
function attempt(pattern: string, texts: readonly string[], timeout: number): { matches: boolean[]; isDone: boolean } {
  context ??= createContext({ run: null });
  const matches: boolean[] = [];
  let isDone = false;
  context.run = () => {
    const expression = new RegExp(pattern, 'u');
    for (const text of texts) matches.push(expression.test(text));
    isDone = true;
  };
  try {
    script.runInContext(context, { timeout });
  } catch (error) {
    // Not by their classes: they may be of the other context.
    const { code, name } = error as { code?: string; name?: string };
    // The clock is read by another thread, which may be late as well: all may be done.
    if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new HostFailure(
        `its \`match\` cannot be matched: ${name === 'RangeError' ? 'it is too large or too deep' : 'it is no regular expression'}`,
      );
  } finally {
    context.run = null;
  }
  return { matches, isDone };
}
