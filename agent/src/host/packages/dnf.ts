import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { namesIn, stampOf } from '../read-system.ts';
import { isDnfLocked } from './dnf-output.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';

/** dnf as a program. What it is given is checked before: names of packages, versions. */

const environment = { LC_ALL: 'C.UTF-8', TERM: 'dumb', PYTHONUNBUFFERED: '1' };

/** Nobody is there to answer; it waits for nobody by itself, and takes nothing along that nobody asked to go. */
const options = ['--color=never', '--setopt=exit_on_lock=True', '--setopt=clean_requirements_on_remove=False'];

/**
 * One transaction: `install …` or `remove …`. Waits for whoever holds the lock.
 * @throws LeftRunning when the agent stops first
 */
export const dnf = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  untilUnlocked(
    () => dnfAtOnce(args, context),
    context,
    ({ output }) => isDnfLocked(output),
  );

/**
 * Removes exactly these packages in one transaction. dnf refuses it when, by what is installed as it decides, anything else
 * would go too or one of these is not there; under its lock rpm checks again that nothing installed needs one of them.
 * Does nothing where somebody holds the lock: what others need may change while that is waited for.
 * @param nevras each `name-[epoch:]version-release.arch`
 * @throws LeftRunning when the agent stops first
 */
export function dnfRemoveExactly(nevras: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  const rpms = nevras.map((nevra) => ({ action: 'Removed', nevra, reason: 'user', repo_id: '@System' }));
  // Only a replay refuses whatever is not in its file. No repository has a say in a removal, nor has to be reachable.
  const args = ['--disablerepo=*', 'history', 'replay', '/dev/stdin'];
  return dnfAtOnce(args, context, JSON.stringify({ version: '0.0', rpms }));
}

function dnfAtOnce(args: readonly string[], context: PackageToolContext, input?: string): Promise<TransactionResult> {
  return runTransaction(
    {
      ...{ program: 'dnf', args: ['-y', ...options, ...args], environment, purpose: 'packages' },
      ...(input === undefined ? {} : { input }),
      ...{ timeLimit: context.limits.packageMs, outputCap: context.limits.outputBytes },
      warn: context.warn,
      started: (process) => context.startedProcess(process, 'left'),
      stop: context.stop,
    },
    context.clock,
  );
}

/** What a transaction would do; nothing is. */
export function dnfWould(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['--assumeno', ...options, ...args], context);
}

/** Asks what the sources offer, or what is wrong. */
export function dnfQuery(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['-q', '--color=never', ...args], context);
}

const ask = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
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
    ({ stdout, stderr }) => isDnfLocked(`${stdout}\n${stderr}`),
  );

/** Where dnf reads its repositories and their variables from, unless its settings say otherwise. */
const sourceDirectories = [
  '/etc/yum.repos.d',
  '/etc/yum/repos.d',
  '/etc/distro.repos.d',
  '/etc/dnf/vars',
  '/etc/yum/vars',
];

/** Differs whenever a file that says where packages come from does. */
export const dnfSourcesStamp = (): string =>
  [
    '/etc/dnf/dnf.conf',
    ...sourceDirectories.flatMap((directory) => namesIn(directory).map((name) => `${directory}/${name}`)),
  ]
    .map((path) => `${path} ${stampOf(path)}`)
    .join('\n');
