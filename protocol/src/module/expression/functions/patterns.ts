import { RE2JS } from 're2js';

/** RE2 regular expressions, which match in linear time for every pattern. */

/** Maximum length in characters. */
export const maximumPattern = 500;

const compiled = new Map<string, RE2JS | null>();

/**
 * Returns an upper bound for the number of states of a pattern. RE2 visits each state for each character. A repetition
 * such as `a{1000}` has 1,000 states.
 */
export function statesOf(pattern: string): number {
  const repeated = [...pattern.matchAll(/\{(\d{1,4}),?(\d{0,4})\}/g)];
  return repeated.reduce((all, [, from, to]) => all * Math.max(1, Number(to || from)), pattern.length + 1);
}

export const isCompiled = (pattern: string): boolean => compiled.has(pattern);

/**
 * Compiles a pattern and caches it.
 * @returns null if the pattern is not a valid RE2 regular expression
 */
export function compiledPattern(pattern: string): RE2JS | null {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let made: RE2JS | null = null;
  try {
    made = RE2JS.compile(pattern);
  } catch {
    // The caller reports the error.
  }
  if (compiled.size >= 1000) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

/** Reports whether any part of a string matches. */
export const hasMatch = (pattern: RE2JS, text: string): boolean => pattern.matcher(text).find();
