import { type Context, createContext, Script } from 'node:vm';
import { HostFailure } from './failure.ts';

/** Milliseconds for all lines of one look. A sane pattern takes a few for the largest file that is read. */
const patience = 400;

let context: Context | null = null;
const script = new Script('run()');

/**
 * Which of these texts a regular expression matches, within a time that does not depend on how it is written: one that
 * backtracks for ever is cut off, so that it cannot hold up an agent.
 * @param pattern with the u flag
 * @throws HostFailure when it takes too long or cannot be matched at all; the message holds neither pattern nor text
 */
export function matching(pattern: string, texts: Iterable<string>, milliseconds = patience): boolean[] {
  context ??= createContext({ run: null });
  const matches: boolean[] = [];
  context.run = () => {
    const expression = new RegExp(pattern, 'u');
    for (const text of texts) matches.push(expression.test(text));
  };
  try {
    script.runInContext(context, { timeout: milliseconds });
    return matches;
  } catch (error) {
    // Not by their classes: they may be of the other context.
    const { code, name } = error as { code?: string; name?: string };
    if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new HostFailure(
        `its \`match\` took longer than ${milliseconds} ms and was stopped at line ${matches.length + 1}: write it without a repetition inside a repetition, or of things that can match the same text`,
      );
    throw new HostFailure(
      `its \`match\` cannot be matched: ${name === 'RangeError' ? 'it is too large or too deep' : 'it is no regular expression'}`,
    );
  } finally {
    context.run = null;
  }
}
