import { cleanEnvironment } from '../clean-environment.ts';
import { fileStatus } from '../read-system.ts';

/** Shell builtins and keywords: words that may begin a command although they are not programs. */
const shellWords = new Set(
  '. : [ alias break case cd command continue do done echo elif else esac eval exec exit export false fi for getopts hash if in jobs kill local printf pwd read readonly return set shift test then times trap true type ulimit umask unalias unset until wait while'.split(
    ' ',
  ),
);

/** Reports whether a path is an executable file. */
export const isProgram = (path: string): boolean => {
  const status = fileStatus(path);
  return status?.isFile === true && (status.mode & 0o111) !== 0;
};

/**
 * Checks whether the program that begins a shell command is missing on this machine.
 * @returns the name of the missing program; null if it exists, or if only the shell can resolve the command
 */
export function missingProgram(command: string): string | null {
  const word = /^\s*([A-Za-z0-9_./+-]+)(?=\s|$)/.exec(command)?.[1];
  if (word === undefined || shellWords.has(word)) return null;
  if (word.startsWith('/')) return isProgram(word) ? null : word;
  if (word.includes('/')) return null;
  const directories = (cleanEnvironment.PATH ?? '').split(':');
  return directories.some((directory) => isProgram(`${directory}/${word}`)) ? null : word;
}
