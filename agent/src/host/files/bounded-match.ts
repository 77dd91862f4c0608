import { type Context, createContext, Script } from 'node:vm';
import { HostFailure } from '../failure.ts';

/** Milliseconds of the processor for all lines of one look. A sane pattern takes a few for the largest file that is read. */
const patience = 400;
/** How much longer the first attempt may go on by the clock: what it waits for the processor is not what it takes of it. */
const margin = 1.1;

let context: Context | null = null;
const script = new Script('run()');

/**
 * Which of these texts a regular expression matches.
 * @param pattern with the u flag
 * @param field   where the pattern is declared, for the message
 * @throws HostFailure when it takes too long or cannot be matched at all; the message holds neither pattern nor text
 */
export const matching = (
  pattern: string,
  texts: Iterable<string>,
  milliseconds = patience,
  field = 'match',
): boolean[] => bounded(pattern, texts, (expression, text) => expression.test(text), milliseconds, field);

/**
 * What a regular expression captures of a text: all of the match first, then each group, undefined where it took no part.
 * @returns null when the text does not match
 * @throws HostFailure as `matching` does
 */
export const captures = (pattern: string, text: string): Captures | null =>
  bounded(
    pattern,
    [text],
    (expression, one) => {
      const found = expression.exec(one);
      return found === null ? null : { groups: [...found], names: { ...found.groups } };
    },
    patience,
    'match',
  )[0] ?? null;

export interface Captures {
  groups: (string | undefined)[];
  names: Record<string, string | undefined>;
}

/**
 * Asks a regular expression about texts, within a time that does not depend on how it is written: one that
 * backtracks for ever is cut off, so that it cannot hold up an agent. What counts is the time of the processor, so that
 * the answer does not depend either on how busy the machine is: a plan and its apply must get the same.
 */
function bounded<T>(
  pattern: string,
  texts: Iterable<string>,
  ask: (expression: RegExp, text: string) => T,
  milliseconds: number,
  field: string,
): T[] {
  const all = [...texts];
  // It can only be cut off by the clock. What did not get the processor meanwhile begins again, with more time.
  for (let timeout = Math.ceil(milliseconds * margin); ; timeout *= 2) {
    const before = process.threadCpuUsage();
    const { answers, isDone } = attempt(pattern, all, ask, timeout, field);
    if (isDone) return answers;
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= milliseconds * 1000)
      throw new HostFailure(
        `its \`${field}\` took longer than ${milliseconds} ms of the processor and was stopped at line ${answers.length + 1}: write it without a repetition inside a repetition, or of things that can match the same text`,
      );
  }
}

/**
 * @param timeout milliseconds by the clock
 * @returns the answers, or those up to where it was cut off
 */
function attempt<T>(
  pattern: string,
  texts: readonly string[],
  ask: (expression: RegExp, text: string) => T,
  timeout: number,
  field: string,
): { answers: T[]; isDone: boolean } {
  context ??= createContext({ run: null });
  const answers: T[] = [];
  let isDone = false;
  context.run = () => {
    const expression = new RegExp(pattern, 'u');
    for (const text of texts) answers.push(ask(expression, text));
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
        `its \`${field}\` cannot be matched: ${name === 'RangeError' ? 'it is too large or too deep' : 'it is no regular expression'}`,
      );
  } finally {
    context.run = null;
  }
  return { answers, isDone };
}
