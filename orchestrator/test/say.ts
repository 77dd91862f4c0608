import { writeSync } from 'node:fs';

/**
 * Prints a line to the parent process. Writes synchronously, so that the line is not lost if this process is killed.
 * Waits while the pipe is full.
 */
export function say(line: string): void {
  for (;;)
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
}
