import { execFile } from 'node:child_process';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');
/** Path of the `muster` program in this clone. */
export const muster = join(root, 'cli', 'bin', 'muster');

export class CliFailure extends Error {
  /** The stable error code; null if there is none. */
  readonly code: string | null;
  constructor(message: string, code: string | null) {
    super(message);
    this.name = 'CliFailure';
    this.code = code;
  }
}

/**
 * Runs `muster` with `--json`.
 * @returns the parsed output
 * @throws CliFailure with the program's message
 */
export function runMuster(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<unknown> {
  return new Promise((resolve, reject) => {
    execFile(muster, [...args, '--json'], { cwd: root, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error) reject(failureOf(args, stderr.trim() || error.message));
      else resolve(stdout.trim() === '' ? null : JSON.parse(stdout));
    });
  });
}

function failureOf(args: readonly string[], said: string): CliFailure {
  try {
    const { code, message, remedy } = JSON.parse(said.split('\n').at(-1) as string).error;
    return new CliFailure(remedy ? `${message}. ${remedy}` : message, code);
  } catch {
    return new CliFailure(`muster ${args.slice(0, 2).join(' ')}: ${said}`, null);
  }
}
