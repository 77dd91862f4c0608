import { basename } from 'node:path';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import { type CommandResult, type Runner, runCommand, runInEnglish } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { openUnnamed } from '../processes/unnamed-file.ts';

/** Runs the command-line programs of Podman and Docker. */

export type Engine = 'podman' | 'docker';

/** Why an engine cannot be queried. */
export interface NoEngine {
  kind: 'programs' | 'units';
  message: string;
}

/** Path through which a program reads its secret. The file itself has no name, and only root can open it. */
export const secretPath = '/proc/self/fd/3';

const outputCap = 16 * 1024 * 1024;
/** Milliseconds for one query. */
const queryMs = 60_000;

/** Returns why the engine cannot be queried if its program is missing; otherwise, null. */
export const missingEngine = (engine: Engine): NoEngine | null =>
  pathOfProgram(engine) === null
    ? {
        kind: 'programs',
        message: `${engine} is not installed on this machine; declare its package before this resource`,
      }
    : null;

export class EngineUnreachable extends HostFailure {}

export type ObjectType = 'container' | 'image' | 'network' | 'volume';

/** Messages of Podman and Docker about objects that do not exist. */
const absence: Readonly<Record<ObjectType, RegExp>> = {
  container: /no such (container|object)/i,
  image: /no such (image|object)|image not known/i,
  network: /no such (network|object)|\bnetwork\b.* not found/i,
  volume: /no such (volume|object)/i,
};
/** Messages about a name that is a prefix of several IDs. */
const ambiguity = /more than one result|multiple ids found/i;
const unreachable = /cannot connect|is the docker daemon running/i;

/**
 * Reports whether an error means that no object of this type has one of the names. Checks the names, because the engine
 * may also report that other things are missing, such as a program.
 */
export function isAbsence(line: string, type: ObjectType, names: readonly string[]): boolean {
  if (!absence[type].test(line) && !ambiguity.test(line)) return false;
  const words = new Set(line.split(/[\s"'`]+/).map((word) => word.replace(/[:,.]+$/, '')));
  // Docker omits its own registry.
  return names.some((name) => words.has(name) || words.has(name.replace(/^docker\.io\/(library\/)?/, '')));
}

/**
 * Queries objects by name.
 * @returns the objects that exist, as unchecked JSON values
 * @throws EngineUnreachable if Docker's daemon does not respond, and HostFailure for any other error
 */
export async function inspectObjects(
  engine: Engine,
  type: ObjectType,
  names: readonly string[],
  runner: Runner,
): Promise<unknown[]> {
  if (names.length === 0) return [];
  const args = [type, 'inspect', '--', ...names];
  const result = await runInEnglish(engine, args, { timeLimit: queryMs, outputCap }, runner);
  const errors = errorLines(result.stderr);
  if (result.exitCode !== 0 && unreachable.test(result.stderr))
    throw new EngineUnreachable(`${engine} does not respond: ${messageOf(result.stderr)}`);
  const isAnswered =
    result.exitCode === 0 || (errors.length > 0 && errors.every((line) => isAbsence(line, type, names)));
  if (!isAnswered || result.timedOut)
    throw new HostFailure(
      `cannot read the ${type}s of ${engine}: ${failureText(result, engine, queryMs, (stderr) => messageOf(stderr))}`,
    );
  if (result.truncated) throw new HostFailure(`${engine} printed more about its ${type}s than the agent can read`);
  return parsed(result.stdout, engine);
}

const idsOf: Readonly<Record<'container' | 'network' | 'volume', readonly string[]>> = {
  container: ['ps', '--all', '--no-trunc', '--quiet'],
  network: ['network', 'ls', '--format={{.Name}}'],
  volume: ['volume', 'ls', '--quiet'],
};

/**
 * Returns the ids or names of the objects that have a label with this value.
 * @throws EngineUnreachable if Docker's daemon does not respond, and HostFailure for any other error
 */
export async function labelledObjects(
  engine: Engine,
  type: 'container' | 'network' | 'volume',
  label: { name: string; value: string },
  runner: Runner,
): Promise<string[]> {
  const args = [...idsOf[type], '--filter', `label=${label.name}=${label.value}`];
  const result = await runInEnglish(engine, args, { timeLimit: queryMs, outputCap }, runner);
  if (result.exitCode !== 0 && unreachable.test(result.stderr))
    throw new EngineUnreachable(`${engine} does not respond: ${messageOf(result.stderr)}`);
  if (result.exitCode !== 0 || result.timedOut)
    throw new HostFailure(
      `cannot list the ${type}s of ${engine}: ${failureText(result, engine, queryMs, (stderr) => messageOf(stderr))}`,
    );
  if (result.truncated) throw new HostFailure(`${engine} printed more about its ${type}s than the agent can read`);
  return idsIn(result.stdout, engine, type);
}

/** @throws HostFailure if a line is neither an id nor a name, because an omitted object would count as absent */
export function idsIn(output: string, engine: Engine, type: ObjectType): string[] {
  const ids = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const other = ids.find((id) => !/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(id));
  if (other !== undefined)
    throw new HostFailure(
      `${engine} has a ${type} with a name that the agent does not understand: ${JSON.stringify(other.slice(0, 60))}`,
    );
  return [...new Set(ids)].sort();
}

/** @throws HostFailure if the output is not a JSON list */
function parsed(output: string, engine: Engine): unknown[] {
  let value: unknown;
  try {
    value = output.trim() === '' ? [] : JSON.parse(output);
  } catch {
    value = null;
  }
  if (!Array.isArray(value)) throw new HostFailure(`${engine} printed something that is not a list in JSON`);
  return value;
}

const errorLines = (stderr: string): string[] => stderr.split('\n').filter((line) => /^\s*error/i.test(line));

/**
 * Returns the errors in the output of an engine, or its last line. Removes hidden texts before it truncates the output.
 */
export function messageOf(output: string, hidden: readonly string[] = []): string {
  const stderr = withoutHidden(output, hidden);
  const lines = stderr
    .split('\n')
    .map((line) => line.trim().replace(/^time="[^"]*" level=\w+ msg=/, ''))
    .filter((line) => line !== '');
  const errors = errorLines(stderr).map((line) => line.trim().replace(/^error:\s*/i, ''));
  const shown = errors.length > 0 ? errors.slice(-3) : lines.slice(-1);
  return shown
    .join(' ')
    .replaceAll(/[\x00-\x1f\x7f]/g, ' ')
    .slice(0, 800);
}

export interface EngineRun {
  /** Arguments of the engine, or of `script`. */
  args: readonly string[];
  /** Shell code to run instead of the engine. */
  script?: string;
  /** Content of the file at `secretPath`. */
  secret?: string;
  environment?: Readonly<Record<string, string>>;
  /** Milliseconds. */
  timeLimit: number;
  /** Texts that never appear in an error. */
  hidden?: readonly string[];
  /** Returns the message in the error output, without hidden texts; default: `messageOf`. */
  messageIn?: typeof messageOf;
  /** Completes "cannot …". */
  doing: string;
  /** Whether processes that the engine starts outlive it, and therefore get their own scope. */
  staysUp?: boolean;
  /** Maximum number of bytes of output; default: 64 KiB. Longer output is an error. */
  outputCap?: number;
  warn(message: string): void;
}

/** Waits until the agent has recorded the process. */
const gate = 'read -r _ <&4 || exit 125; exec 4<&-; exec "$@"';

/**
 * @param program an engine, or another program that manages images or containers
 * @throws HostFailure with the program's output
 */
export async function runEngine(program: string, run: EngineRun, runner: Runner): Promise<string> {
  const result = await startEngine(program, run, runner);
  const name = basename(program);
  if (result.exitCode === 0 && !result.timedOut) {
    if (result.truncated && run.outputCap !== undefined)
      throw new HostFailure(`cannot ${run.doing}: ${name} printed more than the agent can read`);
    return result.stdout;
  }
  const text = failureText(result, name, run.timeLimit, (stderr) => (run.messageIn ?? messageOf)(stderr, run.hidden));
  throw new HostFailure(`cannot ${run.doing}: ${text}`);
}

async function startEngine(engine: string, run: EngineRun, runner: Runner): Promise<CommandResult> {
  const file = openUnnamed(run.secret ?? '');
  try {
    return await runCommand(
      {
        program: 'sh',
        args: [
          '-c',
          gate,
          'sh',
          ...(run.script === undefined ? [engine] : ['sh', '-c', run.script, 'sh']),
          ...run.args,
        ],
        environment: { LC_ALL: 'C.UTF-8', ...run.environment },
        scriptFd: file.fd,
        timeLimit: run.timeLimit,
        outputCap: run.outputCap ?? 64 * 1024,
        started: (process) => runner.startedProcess(process),
        ...(run.staysUp === true ? { scope: { purpose: 'container', warn: run.warn } } : {}),
      },
      runner.clock,
    );
  } finally {
    file.close();
  }
}

/** An engine may quote a value that it refuses, and escape it. */
export const withoutHidden = (text: string, hidden: readonly string[]): string =>
  hidden
    .flatMap((one) => [one, JSON.stringify(one).slice(1, -1)])
    .filter((one) => one.length > 2)
    .sort((one, other) => other.length - one.length)
    .reduce((rest, one) => rest.replaceAll(one, '…'), text);
