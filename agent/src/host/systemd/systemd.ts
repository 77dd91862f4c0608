import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { exists, namesIn, readText } from '../read-system.ts';

/** Talking to systemd, by systemctl and journalctl. */

/** What a command needs that is not about the command. */
export interface Runner {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
}

/** What systemd says of one unit. Words are systemd's own. */
export interface UnitState {
  /** The name that counts, where it was asked for by another. */
  id: string;
  /** loaded, not-found, masked, bad-setting, error. */
  load: string;
  /** active, reloading, inactive, failed, activating, deactivating. */
  active: string;
  sub: string;
  /** enabled, disabled, static, masked …; empty when there is no such unit. */
  unitFileState: string;
  /** The file it comes from; empty when there is none. */
  fragment: string;
  dropIns: string[];
  needsReload: boolean;
  canReload: boolean;
  type: string;
  remainsAfterExit: boolean;
  /** How it ended last: success, exit-code, signal, timeout … */
  result: string;
  reloadResult: string;
  exitStatus: number;
  /** How often systemd started it again by itself. */
  restarts: number;
  /** Something is being done about it. */
  hasJob: boolean;
  /** Another at every start; empty when it was never started. */
  invocation: string;
  /** When its state last changed, in microseconds since boot; '0' when it never did. */
  changedAt: string;
  /** Whether it ended once since boot, as far as systemd still knows. */
  hasEnded: boolean;
}

const properties = [
  'Id',
  'LoadState',
  'ActiveState',
  'SubState',
  'UnitFileState',
  'FragmentPath',
  'SourcePath',
  'DropInPaths',
  'NeedDaemonReload',
  'CanReload',
  'Type',
  'RemainAfterExit',
  'Result',
  'ReloadResult',
  'ExecMainStatus',
  'NRestarts',
  'Job',
  'InvocationID',
  'StateChangeTimestampMonotonic',
  'InactiveEnterTimestampMonotonic',
];

/** More names than this go into several calls, so that a list of arguments is never too long. */
const maxNames = 200;
const outputCap = 1024 * 1024;

/**
 * Whether systemd runs this machine.
 * @throws HostFailure naming what does, if it does not
 */
function expectSystemd(root = ''): void {
  if (exists(`${root}/run/systemd/system`)) return;
  const found = exists(`${root}/run/openrc`) ? 'OpenRC' : (readText(`${root}/proc/1/comm`)?.trim() ?? '');
  throw new HostFailure(
    `this machine is not run by systemd${found === '' ? '' : `, but by ${found}`}; its services cannot be managed as units of systemd`,
  );
}

/**
 * Asks about units, all in one call.
 * @param names with their suffix
 */
export async function readUnits(
  names: readonly string[],
  timeLimit: number,
  runner: Runner,
): Promise<Map<string, UnitState>> {
  expectSystemd();
  const units = new Map<string, UnitState>();
  for (let from = 0; from < names.length; from += maxNames) {
    const some = names.slice(from, from + maxNames);
    const result = await systemctl(['show', `--property=${properties.join(',')}`], some, timeLimit, runner);
    if (result.exitCode !== 0)
      throw new HostFailure(
        `systemd cannot be asked about units: ${result.timedOut ? `no answer within ${timeLimit / 1000} s` : lastLine(result.stderr)}`,
      );
    for (const [name, unit] of parseUnits(result.stdout, some)) units.set(name, unit);
  }
  return units;
}

/**
 * Reads what `systemctl show` prints: a block for each name, in order, with an empty line between them.
 * @throws HostFailure when it is not that
 */
export function parseUnits(text: string, names: readonly string[]): Map<string, UnitState> {
  const blocks = text.trim().split(/\n\s*\n/);
  if (blocks.length !== names.length)
    throw new HostFailure(`systemd told of ${blocks.length} units where it was asked about ${names.length}`);
  return new Map(names.map((name, i) => [name, parseUnit(blocks[i] as string)]));
}

function parseUnit(block: string): UnitState {
  const values = new Map<string, string>();
  for (const line of block.split('\n')) {
    const cut = line.indexOf('=');
    if (cut > 0) values.set(line.slice(0, cut), line.slice(cut + 1));
  }
  const value = (name: string): string => values.get(name) ?? '';
  const yes = (name: string): boolean => value(name) === 'yes';
  const happened = (name: string): boolean => !['', '0'].includes(value(name));
  return {
    id: value('Id'),
    load: value('LoadState'),
    active: value('ActiveState'),
    sub: value('SubState'),
    unitFileState: sysvState(value('SourcePath')) ?? value('UnitFileState'),
    fragment: value('FragmentPath'),
    dropIns: value('DropInPaths')
      .split(' ')
      .filter((path) => path !== ''),
    needsReload: yes('NeedDaemonReload'),
    canReload: yes('CanReload'),
    type: value('Type'),
    remainsAfterExit: yes('RemainAfterExit'),
    result: value('Result'),
    reloadResult: value('ReloadResult'),
    exitStatus: Number(value('ExecMainStatus')) || 0,
    restarts: Number(value('NRestarts')) || 0,
    hasJob: happened('Job'),
    invocation: value('InvocationID'),
    changedAt: value('StateChangeTimestampMonotonic'),
    hasEnded: happened('InactiveEnterTimestampMonotonic'),
  };
}

/** A unit generated from a script in /etc/init.d is enabled by links to that, of which systemd itself tells nothing. */
function sysvState(source: string): string | null {
  const script = /^\/etc\/init\.d\/([^/]+)$/.exec(source)?.[1];
  if (script === undefined) return null;
  const started = [2, 3, 4, 5].some((level) =>
    namesIn(`/etc/rc${level}.d`).some((link) => /^S\d\d/.test(link) && link.slice(3) === script),
  );
  return started ? 'enabled' : 'disabled';
}

/** Runs systemctl about units. Never throws because of what it says. */
export const systemctl = (
  verb: readonly string[],
  names: readonly string[],
  timeLimit: number,
  runner: Runner,
): Promise<CommandResult> =>
  runCommand(
    {
      program: 'systemctl',
      args: ['--no-pager', '--no-ask-password', ...verb, '--', ...names],
      timeLimit,
      outputCap,
      started: runner.startedProcess,
    },
    runner.clock,
  );

/** Whether drop-ins of a unit in /etc came or went since systemd read them: systemd does not notice that by itself. */
export function dropInsChanged({ dropIns }: UnitState, name: string): boolean {
  const folder = `/etc/systemd/system/${name}.d`;
  const there = namesIn(folder).filter((file) => file.endsWith('.conf'));
  const known = dropIns.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1));
  return there.length !== known.length || there.some((file) => !known.includes(file));
}

/** The last words of a unit in the journal; empty when there is none to be had. */
export async function lastWords(name: string, lines: number, timeLimit: number, runner: Runner): Promise<string> {
  try {
    const result = await runCommand(
      {
        program: 'journalctl',
        args: ['--no-pager', '--quiet', '--output=cat', `--lines=${lines}`, `--unit=${name}`],
        timeLimit,
        outputCap: 4096,
        started: runner.startedProcess,
      },
      runner.clock,
    );
    return result.exitCode === 0 ? result.stdout.trim() : '';
  } catch (error) {
    if (error instanceof HostFailure) return '';
    throw error;
  }
}

export const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.trim().slice(0, 500) ?? '';
