import { randomBytes } from 'node:crypto';
import { accessSync, constants, fstatSync } from 'node:fs';
import { exists } from '../read-system.ts';
import { openUnnamed } from './unnamed-file.ts';

/**
 * Where PID 1 is systemd, what changes the machine, or is somebody's login, runs in a transient scope of its own: outside
 * the agent's unit, so that neither the agent's stop nor its memory limit ends it half way. `systemd-run --scope` makes the
 * scope and then executes the program in place: its process number and its open files stay.
 */

/** What is to run in a scope. */
export interface ScopeWish {
  /** What the scope is for, in its name: small letters. */
  readonly purpose: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Of the scope, such as `SendSIGHUP=yes`: those that every systemd knows. */
  readonly properties?: readonly string[];
  /** Told when there should be a scope and is none. */
  warn(message: string): void;
}

/** What to start instead of a program, so that it gets a scope. */
export interface ScopedLaunch {
  readonly program: string;
  readonly args: string[];
  /** To be the program's file descriptor 5. */
  readonly markFd: number;
  /** Name of the scope. */
  readonly unit: string;
  /** The scope is there, and the program begins: what was printed before are words of `systemd-run`. Until it has ended. */
  hasBegun(): boolean;
}

/** Writes down that the scope is made, then becomes the program. */
const intoProgram = 'unset INVOCATION_ID; echo >&5 || exit 125; exec 5>&-; exec "$@"';

const searchPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * Of what runs in a scope the kernel may have to end the largest program, and systemd would then end all the rest. Those
 * before version 253 do not do that, and know no such property; Debian's 252 does both.
 */
let knowsOomPolicy = true;

/**
 * Has a program started in a scope, or without one where there is none to be had.
 * @param attempt starts it; with null: without a scope
 * @param refusal what was said by a launch that did not come to the program; null: what came of it stands
 */
export async function inScope<Outcome>(
  wish: ScopeWish,
  attempt: (launch: ScopedLaunch | null) => Promise<Outcome>,
  refusal: (outcome: Outcome) => string | null,
): Promise<Outcome> {
  const systemdRun = process.geteuid?.() === 0 && exists('/run/systemd/system') ? pathOfProgram('systemd-run') : null;
  // What is not there is said by whoever starts it.
  if (systemdRun === null || pathOfProgram(wish.program) === null) return attempt(null);
  for (;;) {
    const mark = openUnnamed('');
    const hasBegun = () => fstatSync(mark.fd).size > 0;
    try {
      const outcome = await attempt({ ...scopeOf(wish), program: systemdRun, markFd: mark.fd, hasBegun });
      const said = hasBegun() ? null : refusal(outcome);
      if (said === null) return outcome;
      if (knowsOomPolicy && said.includes('OOMPolicy')) {
        knowsOomPolicy = false;
        continue;
      }
      scopeRefused(said, wish.warn);
    } finally {
      mark.close();
    }
    return attempt(null);
  }
}

function scopeOf({ purpose, program, args, properties = [] }: ScopeWish): Pick<ScopedLaunch, 'unit' | 'args'> {
  const unit = `muster-${purpose}-${randomBytes(6).toString('hex')}.scope`;
  const all = [...properties, ...(knowsOomPolicy ? ['OOMPolicy=continue'] : [])];
  return {
    unit,
    args: [
      ...['--scope', '--quiet', '--collect', `--unit=${unit}`, `--description=Muster: ${purpose}`],
      ...all.map((property) => `--property=${property}`),
      ...['--', '/bin/sh', '-c', intoProgram, 'sh', program, ...args],
    ],
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
function scopeRefused(reason: string, warn: (message: string) => void): void {
  if (refusalTold) return;
  refusalTold = true;
  const said = reason.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  warn(
    `systemd gives no transient scope${said === '' ? '' : ` (${said})`}: scripts, package transactions and terminals run inside the agent's own unit, and end with it`,
  );
}
