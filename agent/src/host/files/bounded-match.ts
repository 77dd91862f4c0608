import { type Context, createContext, Script } from 'node:vm';
import { HostFailure } from '../failure.ts';

/**
 * Maximum CPU time for all lines in one observation. A reasonable pattern takes a few milliseconds even for the largest
 * file.
 */
const maxCpuMs = 400;
/** Wall-clock limit of the first attempt, as a multiple of the CPU limit, because the thread may wait for a CPU. */
const wallClockFactor = 1.1;

let context: Context | null = null;
const script = new Script('run()');

/**
 * Tests each string against a regular expression.
 * @param pattern compiled with the `u` flag
 * @param field   the field that declares the pattern, for the message
 * @throws HostFailure if the pattern is invalid or takes too long; the message contains neither pattern nor text
 */
export const matching = (
  pattern: string,
  texts: Iterable<string>,
  milliseconds = maxCpuMs,
  field = 'match',
): boolean[] => matchBounded(pattern, texts, (expression, text) => expression.test(text), milliseconds, field);

/**
 * Matches text and captures groups.
 * @returns the whole match, then each group (undefined if it did not participate); null if the text does not match
 * @throws HostFailure as `matching` does
 */
export const captures = (pattern: string, text: string): Captures | null =>
  matchBounded(
    pattern,
    [text],
    (expression, one) => {
      const found = expression.exec(one);
      return found === null ? null : { groups: [...found], names: { ...found.groups } };
    },
    maxCpuMs,
    'match',
  )[0] ?? null;

export interface Captures {
  groups: (string | undefined)[];
  names: Record<string, string | undefined>;
}

/** A match with its position in the text, in UTF-16 code units. */
export interface PlacedCaptures extends Captures {
  index: number;
}

/** Maximum total number of matches in all texts. */
const maxMatches = 100_000;

/**
 * Matches each text and captures groups.
 * @param matches whether to find all matches of a text, from left to right, or only the first
 * @returns the matches of each text
 * @throws HostFailure as `matching` does, or if there are more than 100,000 matches
 */
export function capturesOf(pattern: string, texts: readonly string[], matches: 'all' | 'first'): PlacedCaptures[][] {
  let count = 0;
  const found = matchBounded(
    pattern,
    texts,
    (expression, text) => {
      const all: PlacedCaptures[] = [];
      const repeated = new RegExp(expression.source, 'gu');
      for (const one of text.matchAll(repeated)) {
        if (++count > maxMatches) break;
        all.push({ index: one.index, groups: [...one], names: { ...one.groups } });
        if (matches === 'first') break;
      }
      return all;
    },
    maxCpuMs,
    'match',
  );
  if (count > maxMatches)
    throw new HostFailure(`its \`match\` matches more than ${maxMatches} times; write a narrower \`match\``);
  return found;
}

/**
 * Matches a regular expression against strings. Aborts an expression that backtracks excessively, so that it cannot
 * block the agent. The limit is CPU time, so that the result does not depend on the machine's load, because a plan and
 * its apply must agree.
 */
function matchBounded<T>(
  pattern: string,
  texts: Iterable<string>,
  match: (expression: RegExp, text: string) => T,
  milliseconds: number,
  field: string,
): T[] {
  const all = [...texts];
  // `node:vm` supports only a wall-clock timeout. An attempt that timed out before it used up its CPU time is repeated
  // with a longer timeout.
  for (let timeout = Math.ceil(milliseconds * wallClockFactor); ; timeout *= 2) {
    const before = process.threadCpuUsage();
    const { answers, isDone } = attempt(pattern, all, match, timeout, field);
    if (isDone) return answers;
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= milliseconds * 1000)
      throw new HostFailure(
        `its \`${field}\` took longer than ${milliseconds} ms of CPU time and was stopped at line ${answers.length + 1}: write it without nested repetitions, and without repeated alternatives that match the same text`,
      );
  }
}

/**
 * @param timeout wall-clock milliseconds
 * @returns the results up to the timeout
 */
function attempt<T>(
  pattern: string,
  texts: readonly string[],
  match: (expression: RegExp, text: string) => T,
  timeout: number,
  field: string,
): { answers: T[]; isDone: boolean } {
  context ??= createContext({ run: null });
  const answers: T[] = [];
  let isDone = false;
  context.run = () => {
    const expression = new RegExp(pattern, 'u');
    for (const text of texts) answers.push(match(expression, text));
    isDone = true;
  };
  try {
    script.runInContext(context, { timeout });
  } catch (error) {
    // `instanceof` fails if the error comes from the other context.
    const { code, name } = error as { code?: string; name?: string };
    // Another thread signals the timeout, possibly after the last text was matched, so `isDone` must be checked.
    if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new HostFailure(
        `its \`${field}\` cannot be matched: ${name === 'RangeError' ? 'it is too large or too deep' : 'it is not a regular expression'}`,
      );
  } finally {
    context.run = null;
  }
  return { answers, isDone };
}
