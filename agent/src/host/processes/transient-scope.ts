import { randomBytes } from 'node:crypto';
import { accessSync, constants, fstatSync } from 'node:fs';
import { exists } from '../read-system.ts';
import { openUnnamed } from './unnamed-file.ts';

/**
 * Runs programs in transient scopes on systemd machines. Scripts, transactions, and logins run outside the agent's
 * unit, so that neither stopping the agent nor the agent's memory limit kills them midway. `systemd-run --scope`
 * creates the scope and then executes the program in place, with the same PID and open files.
 */

export interface ScopeRequest {
  /** Part of the scope's name, in lower case. */
  readonly purpose: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Scope properties that every version of systemd supports, such as `SendSIGHUP=yes`. */
  readonly properties?: readonly string[];
  /** Called if systemd refuses the scope. */
  warn(message: string): void;
}

/** The command that starts a program in a scope. */
export interface ScopedLaunch {
  readonly program: string;
  readonly args: string[];
  /** Must become the program's file descriptor 5. */
  readonly markFd: number;
  /** The scope's name. */
  readonly unit: string;
  /**
   * Reports whether the program has begun. All earlier output comes from `systemd-run`. Valid until the program exits.
   */
  hasStarted(): boolean;
}

/** Writes to the mark file that the scope exists, then becomes the program. */
const markThenRun = 'unset INVOCATION_ID; echo >&5 || exit 125; exec 5>&-; exec "$@"';

const searchPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * Whether systemd supports OOMPolicy for scopes. With this property, systemd does not kill the whole scope when the
 * kernel kills one of its programs. Most versions before 253 never kill the scope and refuse the property; Debian's 252
 * kills the scope and accepts the property.
 */
let supportsOomPolicy = true;

/**
 * Starts a program in a scope, or without one if the machine has none.
 * @param attempt starts the program; without a scope if `launch` is null
 * @param refusal returns the output of a launch that failed before the program began, or null if the outcome is final
 */
export async function inScope<Outcome>(
  request: ScopeRequest,
  attempt: (launch: ScopedLaunch | null) => Promise<Outcome>,
  refusal: (outcome: Outcome) => string | null,
): Promise<Outcome> {
  const systemdRun = process.geteuid?.() === 0 && exists('/run/systemd/system') ? pathOfProgram('systemd-run') : null;
  // Without a scope, spawning reports a missing program.
  if (systemdRun === null || pathOfProgram(request.program) === null) return attempt(null);
  for (;;) {
    const mark = openUnnamed('');
    const hasStarted = () => fstatSync(mark.fd).size > 0;
    try {
      const outcome = await attempt({
        ...scopeOf(request),
        program: systemdRun,
        markFd: mark.fd,
        hasStarted,
      });
      const output = hasStarted() ? null : refusal(outcome);
      if (output === null) return outcome;
      if (supportsOomPolicy && output.includes('OOMPolicy')) {
        supportsOomPolicy = false;
        continue;
      }
      scopeRefused(output, request.warn);
    } finally {
      mark.close();
    }
    return attempt(null);
  }
}

function scopeOf({ purpose, program, args, properties = [] }: ScopeRequest): Pick<ScopedLaunch, 'unit' | 'args'> {
  const unit = `muster-${purpose}-${randomBytes(6).toString('hex')}.scope`;
  const all = [...properties, ...(supportsOomPolicy ? ['OOMPolicy=continue'] : [])];
  return {
    unit,
    args: [
      ...['--scope', '--quiet', '--collect', `--unit=${unit}`, `--description=Muster: ${purpose}`],
      ...all.map((property) => `--property=${property}`),
      ...['--', '/bin/sh', '-c', markThenRun, 'sh', program, ...args],
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

let hasWarned = false;

/**
 * Warns once that systemd refuses scopes.
 * @param reason systemd-run's output
 */
function scopeRefused(reason: string, warn: (message: string) => void): void {
  if (hasWarned) return;
  hasWarned = true;
  const output = reason.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  warn(
    `systemd refuses a transient scope${output === '' ? '' : ` (${output})`}: scripts, package transactions, and terminals run inside the agent’s own unit and stop when it stops`,
  );
}
