import type { CommandResult } from '../../host/processes/run-command.ts';
import { lastJournalLines, readUnits, type UnitState } from '../../host/systemd/systemd.ts';
import type { Machine } from '../provider/provider.ts';
import { howItEnded } from './diff.ts';
import { isLive, isUp, runsOnce } from './seen.ts';
import type { Process, Work } from './work.ts';

/** Checks whether units reached the requested state, and explains failures. */

/** Milliseconds before each recheck. systemd may consider a program started even if it exits a moment later. */
const laterLooks = [150, 350];
const wordLines = 10;
const wordsMs = 10_000;
const longest = 3000;

/**
 * Observes the units again, and records the reason for each failure.
 * @param answers results of systemctl, by subcommand
 */
export async function confirm(
  works: readonly Work[],
  answers: ReadonlyMap<Process, CommandResult>,
  machine: Machine,
): Promise<void> {
  let open = works.filter(({ process }) => process !== null);
  for (const wait of [0, ...laterLooks]) {
    if (open.length === 0) return;
    if (wait > 0) await new Promise<void>((resolve) => machine.clock.after(wait, resolve));
    const names = open.map(({ name }) => name);
    const now = await readUnits(names, machine.limits.checkMs, machine);
    const watched: Work[] = [];
    for (const work of open) {
      const unit = now.get(work.name) as UnitState;
      const fault = faultOf(work, unit, answers.get(work.process as Process), machine.limits.scriptMs);
      if (fault !== null) Object.assign(work, await explain(work, fault, machine));
      else if (work.process !== 'stop' && ['simple', 'exec', 'idle'].includes(unit.type)) watched.push(work);
    }
    open = watched;
  }
}

/** Returns a unit's error after an action, or null if there is none. */
function faultOf(
  { name, process, item }: Pick<Work, 'name' | 'process' | 'item'>,
  unit: UnitState,
  answer: CommandResult | undefined,
  timeLimit: number,
): string | null {
  if (answer?.timedOut === true && unit.hasJob)
    return `${name}: systemd has not finished after ${timeLimit / 1000} s, but continues`;
  const words = answer === undefined ? '' : linesAbout(name, answer.stderr);
  const why = words === '' ? '' : `: ${words}`;
  if (process === 'stop') return isLive(unit) ? `${name} still runs after it was stopped${why}` : null;
  if (process === 'reload') {
    const failed = unit.reloadResult !== 'success' || unit.changedAt === item.seen.unit.changedAt;
    return failed && answer?.exitCode !== 0 ? `${name} could not be reloaded${why}` : upFault(name, unit, why);
  }
  const again = unit.invocation !== '' && unit.invocation !== item.seen.unit.invocation;
  if (process === 'restart' && !again && !runsOnce(unit)) return `${name} was not restarted${why}`;
  return upFault(name, unit, why);
}

function upFault(name: string, unit: UnitState, why: string): string | null {
  if (isUp(unit))
    return unit.restarts > 0 ? `${name} does not keep running: ${howItEnded(unit)}, and systemd restarted it` : null;
  if (unit.sub === 'auto-restart')
    return `${name} does not keep running: ${howItEnded(unit)}, and systemd keeps restarting it`;
  if (runsOnce(unit) && unit.active === 'inactive' && unit.result === 'success' && why === '') return null;
  if (unit.result === 'success' && unit.active === 'inactive' && unit.invocation !== '' && why === '')
    return `${name} exited immediately after it started; if it is meant to run to completion, declare \`type: oneshot\``;
  return `${name} did not start${unit.result === 'success' ? '' : `: ${howItEnded(unit)}`}${why}`;
}

/** Returns the lines of systemctl's output that concern one of several units, joined by spaces. */
function linesAbout(name: string, stderr: string): string {
  return stderr
    .split('\n')
    .filter((line) => line.includes(name) && !line.startsWith('See ') && !line.startsWith('Warning:'))
    .map((line) => line.trim())
    .join(' ')
    .slice(0, 500);
}

/**
 * Adds the unit's last output to the error, unless the unit, or a file that triggers it, contains a secret that may
 * appear in the output.
 */
async function explain(
  { name, item }: Work,
  fault: string,
  machine: Machine,
): Promise<Pick<Work, 'failure' | 'words'>> {
  if (item.resource.sensitive_fields.length > 0 || machine.followsSecret(item.resource))
    return { failure: `${fault}; its journal is not shown, because the unit or a file that triggers it has a secret` };
  const words = await lastJournalLines(name, wordLines, wordsMs, machine);
  return { failure: fault, words: words === '' ? '' : `; last in the journal:\n${words.slice(-longest)}` };
}
