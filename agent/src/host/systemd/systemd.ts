import { HostFailure } from '../failure.ts';
import { lastLine } from '../processes/failure-text.ts';
import { type CommandResult, type Runner, runCommand } from '../processes/run-command.ts';
import { exists, namesIn, readText } from '../read-system.ts';

/** Queries and controls systemd with systemctl and journalctl. */

/** The state of one unit, in systemd's terms. */
export interface UnitState {
  /** The canonical name, if the unit was requested by an alias. */
  id: string;
  /** loaded, not-found, masked, bad-setting, error. */
  load: string;
  /** active, reloading, inactive, failed, activating, deactivating. */
  active: string;
  sub: string;
  /** enabled, disabled, static, masked …; empty if the unit does not exist and no link enables it. */
  unitFileState: string;
  /** The unit file's path; empty if there is none. */
  fragment: string;
  dropIns: string[];
  needsReload: boolean;
  canReload: boolean;
  type: string;
  remainsAfterExit: boolean;
  /** Result of the last execution: success, exit-code, signal, timeout, …. */
  result: string;
  reloadResult: string;
  exitStatus: number;
  /** Number of automatic restarts. */
  restarts: number;
  /** Whether a job is pending or running. */
  hasJob: boolean;
  /** Identifies one start of the unit; empty if the unit was never started. */
  invocation: string;
  /** Time of the last state change, in microseconds since boot; '0' if the state never changed. */
  changedAt: string;
  /** Whether the unit has become inactive since boot. systemd discards this information when it unloads the unit. */
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

/** Maximum number of names in one call, to stay below the kernel's limit on argument length. */
const maxNames = 200;
const outputCap = 1024 * 1024;

/**
 * Checks that systemd runs this machine.
 * @throws HostFailure that names the actual init system
 */
function expectSystemd(): void {
  if (exists('/run/systemd/system')) return;
  const found = exists('/run/openrc') ? 'OpenRC' : (readText('/proc/1/comm')?.trim() ?? '');
  throw new HostFailure(
    `systemd is not running on this machine${found === '' ? '' : `; its init system is ${found}`}. systemd units cannot be managed here.`,
  );
}

/**
 * Reads unit states, up to `maxNames` in one call.
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
        `cannot query systemd for units: ${result.timedOut ? `no answer within ${timeLimit / 1000} s` : lastLine(result.stderr)}`,
      );
    for (const [name, unit] of parseUnits(result.stdout, some))
      units.set(name, unit.unitFileState === '' && isLinked(name) ? { ...unit, unitFileState: 'enabled' } : unit);
  }
  return units;
}

/**
 * Parses output of `systemctl show`: one block for each name, in order, separated by empty lines.
 * @throws HostFailure if the number of blocks differs
 */
export function parseUnits(text: string, names: readonly string[]): Map<string, UnitState> {
  const blocks = text.trim().split(/\n\s*\n/);
  if (blocks.length !== names.length)
    throw new HostFailure(`systemd reported ${blocks.length} units instead of ${names.length}`);
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

/**
 * Reads the links in /etc/rc*.d that enable a script in /etc/init.d. systemd does not report these links for its unit.
 */
function sysvState(source: string): string | null {
  const script = /^\/etc\/init\.d\/([^/]+)$/.exec(source)?.[1];
  if (script === undefined) return null;
  const started = [2, 3, 4, 5].some((level) =>
    namesIn(`/etc/rc${level}.d`).some((link) => /^S\d\d/.test(link) && link.slice(3) === script),
  );
  return started ? 'enabled' : 'disabled';
}

/**
 * Reports whether a link enables the unit. systemd does not report links whose unit file was deleted, although these
 * links enable a new unit with the same name.
 */
function isLinked(name: string): boolean {
  const folder = '/etc/systemd/system';
  return namesIn(folder)
    .filter((entry) => /\.(wants|requires|upholds)$/.test(entry))
    .some((entry) => namesIn(`${folder}/${entry}`).includes(name));
}

/** Runs systemctl. A failing command is a result, not an error. */
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

/**
 * Reports whether drop-ins in /etc were added or removed since systemd loaded the unit, which systemd does not report.
 */
export function dropInsChanged({ dropIns }: UnitState, name: string): boolean {
  const folder = `/etc/systemd/system/${name}.d`;
  const there = namesIn(folder).filter((file) => file.endsWith('.conf'));
  const known = dropIns.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1));
  return there.length !== known.length || there.some((file) => !known.includes(file));
}

/** Returns the last journal lines of a unit; empty if there are none. */
export async function lastJournalLines(
  name: string,
  lines: number,
  timeLimit: number,
  runner: Runner,
): Promise<string> {
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
