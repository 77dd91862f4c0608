import { randomBytes } from 'node:crypto';
import { accessSync, constants, fstatSync } from 'node:fs';
import { exists } from './read-system.ts';
import { openUnnamed } from './unnamed-file.ts';

/**
 * Where PID 1 is systemd, what changes the machine, or is somebody's login, runs in a transient scope of its own: outside the agent's unit, so
 * that neither the agent's stop nor its memory limit ends it half way. `systemd-run --scope` makes the scope and then
 * executes the program in place: its process number and its open files stay.
 */

/** What to start instead of a program, so that it gets a scope. */
export interface ScopedLaunch {
  program: string;
  args: string[];
  /** To be the program's file descriptor 5. */
  markFd: number;
  /** Whether the program began; if not, there was no scope, and nothing of it has run. */
  began(): boolean;
  close(): void;
}

/** Writes down that the scope is made, then becomes the program. */
const intoProgram = 'unset INVOCATION_ID; echo >&5 || exit 125; exec 5>&-; exec "$@"';

const searchPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** @param purpose what the scope is for, in its name: small letters */
export function scopedLaunch(purpose: string, program: string, args: readonly string[]): ScopedLaunch | null {
  if (process.geteuid?.() !== 0 || !exists('/run/systemd/system')) return null;
  const systemdRun = pathOfProgram('systemd-run');
  // What is not there is said by whoever starts it.
  if (systemdRun === null || pathOfProgram(program) === null) return null;
  const mark = openUnnamed('');
  const unit = `muster-${purpose}-${randomBytes(6).toString('hex')}.scope`;
  return {
    program: systemdRun,
    args: [
      ...['--scope', '--quiet', '--collect', `--unit=${unit}`, `--description=Muster: ${purpose}`],
      ...['--', '/bin/sh', '-c', intoProgram, 'sh', program, ...args],
    ],
    markFd: mark.fd,
    began: () => fstatSync(mark.fd).size > 0,
    close: mark.close,
  };
}

export function pathOfProgram(program: string): string | null {
  const candidates = program.includes('/') ? [program] : searchPath.map((directory) => `${directory}/${program}`);
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

let refusalTold = false;

/**
 * That there was no scope is worth a warning, the first time.
 * @param reason what systemd-run said
 */
export function scopeRefused(reason: string, warn: (message: string) => void): void {
  if (refusalTold) return;
  refusalTold = true;
  const said = reason.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  warn(
    `systemd gives no transient scope${said === '' ? '' : ` (${said})`}: scripts, package transactions and terminals run inside the agent's own unit, and end with it`,
  );
}
