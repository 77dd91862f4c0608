import type { CommandResult } from './run-command.ts';

/**
 * Returns why a program failed: a timeout, its error message, or its exit code.
 * @param program subject of the sentence: the name of the program, or `it`
 * @param timeLimit in milliseconds
 * @param messageOf returns the message in the standard error; may return an empty string
 */
export function failureText(
  { stderr, timedOut, exitCode }: Pick<CommandResult, 'stderr' | 'timedOut' | 'exitCode'>,
  program: string,
  timeLimit: number,
  messageOf: (stderr: string) => string,
): string {
  if (timedOut) return `${program} took longer than ${timeLimit / 1000} s`;
  return messageOf(stderr) || `${program} exited with ${exitCode}`;
}

/** Returns how a program ended, such as `exited with 1` or `was ended by SIGKILL`. */
export const endText = ({ exitCode, signal }: Pick<CommandResult, 'exitCode' | 'signal'>): string =>
  exitCode === null ? `was ended by ${signal}` : `exited with ${exitCode}`;

/** Returns the last line of a program's output, up to 500 characters. */
export const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.trim().slice(0, 500) ?? '';
