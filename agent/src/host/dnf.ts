import type { Clock } from './clock.ts';
import { isDnfLocked } from './dnf-output.ts';
import { HostFailure } from './failure.ts';
import { type CommandResult, type ProcessIdentity, runCommand } from './run-command.ts';
import { runTransaction, type TransactionResult } from './transaction.ts';

/** dnf as a program. What it is given is checked before: names of packages, versions. */

/** What it is run with: part of what a provider knows of the machine. */
export interface DnfContext {
  clock: Clock;
  limits: { packageMs: number; packageLockMs: number; outputBytes: number };
  stop: AbortSignal;
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  warn(message: string): void;
}

const environment = { LC_ALL: 'C.UTF-8', TERM: 'dumb', PYTHONUNBUFFERED: '1' };

/** Nobody is there to answer; it waits for nobody by itself, and takes nothing along that nobody asked to go. */
const options = ['--color=never', '--setopt=exit_on_lock=True', '--setopt=clean_requirements_on_remove=False'];

/**
 * One transaction: `install …` or `remove …`. Waits for whoever holds the lock.
 * @throws LeftRunning when the agent stops first
 */
export function dnf(args: readonly string[], context: DnfContext): Promise<TransactionResult> {
  return untilUnlocked(
    () =>
      runTransaction(
        {
          ...{ program: 'dnf', args: ['-y', ...options, ...args], environment, purpose: 'packages' },
          ...{ timeLimit: context.limits.packageMs, outputCap: context.limits.outputBytes },
          warn: context.warn,
          started: (process) => context.startedProcess(process, 'left'),
          stop: context.stop,
        },
        context.clock,
      ),
    context,
    ({ output }) => output,
  );
}

/** What a transaction would do; nothing is. */
export function dnfWould(args: readonly string[], context: DnfContext): Promise<CommandResult> {
  return ask(['--assumeno', ...options, ...args], context);
}

/** Asks what the sources offer, or what is wrong. */
export function dnfQuery(args: readonly string[], context: DnfContext): Promise<CommandResult> {
  return ask(['-q', '--color=never', ...args], context);
}

const ask = (args: readonly string[], context: DnfContext): Promise<CommandResult> =>
  untilUnlocked(
    () =>
      runCommand(
        {
          ...{ program: 'dnf', args, environment, timeLimit: context.limits.packageMs, outputCap: 16 * 1024 * 1024 },
          started: (process) => context.startedProcess(process),
          scope: { purpose: 'packages', warn: context.warn },
        },
        context.clock,
      ),
    context,
    ({ stdout, stderr }) => `${stdout}\n${stderr}`,
  );

/** How often a lock is tried. Milliseconds. */
const lockPauseMs = 1000;

/** Tries again for as long as somebody else holds the lock and there is patience for it. */
async function untilUnlocked<T>(run: () => Promise<T>, context: DnfContext, said: (result: T) => string): Promise<T> {
  const deadline = context.clock.monotonic() + context.limits.packageLockMs;
  for (;;) {
    const result = await run();
    if (!isDnfLocked(said(result)) || context.clock.monotonic() > deadline) return result;
    if (context.stop.aborted) throw new HostFailure('given up waiting for a lock, because the agent stops');
    await new Promise<void>((resolve) => context.clock.after(lockPauseMs, resolve));
  }
}
