import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { lastLine } from '../processes/failure-text.ts';
import type { Runner } from '../processes/run-command.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { exists, fileStatus, namesIn, readText, stampOf } from '../read-system.ts';

/** Queries and controls OpenRC with rc-status, rc-service, and rc-update. */

const runlevels = '/etc/runlevels';
const outputCap = 256 * 1024;

/** The state of each service by name, in OpenRC's terms: started, stopped, crashed, inactive, starting … */
export type ServiceStates = ReadonlyMap<string, string>;

/**
 * Checks that OpenRC runs this machine.
 * @throws HostFailure that names the actual init system
 */
function expectOpenrc(): void {
  if (exists('/run/openrc/softlevel')) return;
  const found = exists('/run/systemd/system') ? 'systemd' : (readText('/proc/1/comm')?.trim() ?? '');
  throw new HostFailure(
    `OpenRC does not run on this machine${found === '' ? '' : `; its init system is ${found}`}. OpenRC services cannot be managed here.`,
  );
}

/** Reads the states of all services in one call. */
export async function readServices(timeLimit: number, runner: Runner): Promise<ServiceStates> {
  expectOpenrc();
  const result = await run('rc-status', ['--nocolor', '--servicelist'], timeLimit, runner);
  if (result.exitCode !== 0)
    throw new HostFailure(
      `cannot query OpenRC for services: ${result.timedOut ? `no answer within ${timeLimit / 1000} s` : lastLine(result.stderr)}`,
    );
  return parseServices(result.stdout);
}

/** Parses lines of rc-status, such as ` name   [  started 00:00:12 (0) ]`. */
export function parseServices(text: string): ServiceStates {
  const states = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, name, state] = /^\s*(\S+)\s+\[\s*([a-z]+)/.exec(line) ?? [];
    if (name !== undefined && state !== undefined) states.set(name, state);
  }
  return states;
}

/**
 * Returns the state of one service; null if it does not exist. Also checks the files, because OpenRC caches its list of
 * services and misses a script that was created within the same second.
 */
export function stateOf(name: string, states: ServiceStates): string | null {
  if (fileStatus(`/etc/init.d/${name}`)?.isFile !== true) return null;
  return states.get(name) ?? (whenStarted(name) === null ? 'stopped' : 'started');
}

/** Returns the run levels that include a service. */
export const levelsOf = (name: string): string[] =>
  namesIn(runlevels).filter((level) => namesIn(`${runlevels}/${level}`).includes(name));

export const levelExists = (level: string): boolean => exists(`${runlevels}/${level}`);
export const linkOf = (name: string, level: string): string => `${runlevels}/${level}/${name}`;
export const startedLink = (name: string): string => `/run/openrc/started/${name}`;

export interface ServiceRunner extends Runner {
  stop: AbortSignal;
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  warn(message: string): void;
}

/**
 * Runs rc-service. The command continues when the agent exits, because OpenRC would consider a service stopped if its
 * script were killed midway.
 * @param verb start, stop, restart
 */
export const rcService = (
  name: string,
  verb: string,
  timeLimit: number,
  runner: ServiceRunner,
): Promise<TransactionResult> =>
  runTransaction(
    {
      program: 'rc-service',
      args: ['--nocolor', '--', name, verb],
      environment: {},
      timeLimit,
      outputCap,
      purpose: 'service',
      warn: (message) => runner.warn(message),
      started: (process) => runner.startedProcess(process, 'left'),
      stop: runner.stop,
    },
    runner.clock,
  );

/** @param verb add, del */
export const rcUpdate = (
  verb: string,
  name: string,
  level: string,
  timeLimit: number,
  runner: Runner,
): Promise<CommandResult> => run('rc-update', ['--nocolor', '--', verb, name, level], timeLimit, runner);

const run = (program: string, args: readonly string[], timeLimit: number, runner: Runner): Promise<CommandResult> =>
  runCommand(
    { program, args, timeLimit, outputCap, started: (process) => runner.startedProcess(process) },
    runner.clock,
  );

/** Returns a stamp that identifies one start of a service; null if the service is not started. */
export const whenStarted = (name: string): string | null => stampOf(startedLink(name)).split(' ')[0] || null;
