import { cleanEnvironment } from '../clean-environment.ts';
import { fileStatus } from '../read-system.ts';

/** What a shell knows by itself: words that may begin a command and are no program. */
const ofTheShell = new Set(
  '. : [ alias break case cd command continue do done echo elif else esac eval exec exit export false fi for getopts hash if in jobs kill local printf pwd read readonly return set shift test then times trap true type ulimit umask unalias unset until wait while'.split(
    ' ',
  ),
);

/** Whether a file can be started as a program. */
export const isProgram = (path: string): boolean => {
  const status = fileStatus(path);
  return status?.isFile === true && (status.mode & 0o111) !== 0;
};

/**
 * The program that a command for a shell begins with, when it is not on this machine.
 * @returns null when it is there, or when only the shell can tell
 */
export function missingProgram(command: string): string | null {
  const word = /^\s*([A-Za-z0-9_./+-]+)(?=\s|$)/.exec(command)?.[1];
  if (word === undefined || ofTheShell.has(word)) return null;
  if (word.startsWith('/')) return isProgram(word) ? null : word;
  if (word.includes('/')) return null;
  const directories = (cleanEnvironment.PATH ?? '').split(':');
  return directories.some((directory) => isProgram(`${directory}/${word}`)) ? null : word;
}
