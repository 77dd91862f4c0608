import { errnoOf, HostFailure, hostFailure } from '../../host/failure.ts';
import { makeDirectory } from '../../host/files/make-directory.ts';
import { failureText, lastLine } from '../../host/processes/failure-text.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';
import { dropInsChanged, systemctl } from '../../host/systemd/systemd.ts';
import { removeEmptyDirectory } from '../directory-unix/directory-unix.ts';
import { writtenPart } from '../file-unix/written-file.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { confirm } from './confirm.ts';
import { confirmWork } from './confirmation.ts';
import { bodyOf, dropInDirectory, dropInFile, isOwned, serviceOf, unitFile, unitOf } from './declared.ts';
import { restartsFor } from './diff.ts';
import { enablingBack, fileRemovals, runningBack } from './removal.ts';
import { isCrashing, isEnabled, isLive, isUp, type ServiceBefore, units } from './seen.ts';
import type { Enabling, Process, ServiceItem, Work } from './work.ts';

/**
 * Applies changes to several units. Each step handles all units: files, enablement, one daemon-reload, and then stop,
 * restart, reload, and start.
 */

export async function execute(items: readonly ServiceItem[], machine: Machine): Promise<Outcome[]> {
  const works = items.map((item) => (item.kind === 'apply' ? workOf(item, machine) : removalOf(item, machine)));
  const timeLimit = machine.limits.scriptMs;
  const going = works.filter(({ goes }) => goes);
  await together(
    'stop',
    going.filter(({ item }) => isLive(item.seen.unit)),
    ['stop'],
    machine,
  );
  // Disables units before it changes their files, because a restored mask, for example, would prevent that.
  const disabled = works.filter(
    ({ goes, enabling, item }) => enabling === 'disable' || (goes && isEnabled(item.seen.unit) === true),
  );
  await together('disable', disabled, ['disable', '--no-reload'], machine);
  for (const work of works) await attempt(work, work.changeFiles);
  const able = (how: Enabling) => works.filter(({ enabling }) => enabling === how);
  await together('enable', able('enable'), ['enable', '--no-reload'], machine);
  await together('enable', able('reenable'), ['reenable', '--no-reload'], machine);
  await together('enable', able('enable-runtime'), ['enable', '--runtime', '--no-reload'], machine);
  if (works.some((work) => needsReload(work))) {
    const result = await systemctl(['daemon-reload'], [], timeLimit, machine);
    if (result.exitCode !== 0)
      throw new HostFailure(
        `systemd could not reload its unit files (systemctl daemon-reload): ${failureText(result, 'systemctl', timeLimit, lastLine)}`,
      );
  }
  // A removed unit that had failed would stay in systemd's list of failed units.
  const failed = going.filter(({ item, failure }) => failure === null && item.seen.unit.active === 'failed');
  if (failed.length > 0) await systemctl(['reset-failed'], names(failed), timeLimit, machine);
  const running = works.filter((work) => work.process !== null && work.failure === null);
  const answers = await process(running, machine);
  machine.stale(units);
  await confirm(running, answers, machine);
  await confirmWork(running, machine);
  return works.map(({ failure, words = '' }) => (failure === null ? {} : { failure, words }));
}

const names = (works: readonly Work[]): string[] => works.map(({ name }) => name);

function workOf(item: ServiceItem, machine: Machine): Work {
  const { resource, seen, difference } = item;
  const body = bodyOf(resource);
  const parts = [
    { found: seen.file, wanted: unitFile(resource) },
    { found: seen.dropIn, wanted: dropInFile(resource) },
  ].flatMap(({ found, wanted }) => {
    if (found === null) return [];
    const change = writtenPart(resource, wanted).diff(found.seen, { purpose: 'apply' });
    return change.action === 'none' ? [] : [{ found, wanted, change }];
  });
  const rereads = parts.some(({ change }) =>
    change.changes.some(({ field }) => ['ensure', 'content', 'symlink'].includes(field)),
  );
  const changeFiles = async (): Promise<void> => {
    for (const { found, wanted } of parts) {
      if (wanted.text !== null && wanted.path.startsWith(`${dropInDirectory(resource)}/`)) makeDropIns(item, machine);
      await writtenPart(resource, wanted).write(found.seen, machine);
    }
    if (item.before?.dropInDirectory === false && dropInFile(resource).text === null) pruneDropIns(item, machine);
  };
  const base = {
    name: unitOf(resource),
    item,
    changeFiles: parts.length > 0 ? changeFiles : null,
    rereads,
    failure: null,
  };
  if (body.ensure === 'absent') return { ...base, goes: true, enabling: null, process: null };
  const changed = (field: string) => difference.changes.find((change) => change.field === field);
  const enabled = changed('enabled');
  // Enables the unit again, because its [Install] section may have changed. The section of a service changes only if
  // the unit replaces a foreign unit.
  const service = serviceOf(resource);
  const mayMove = service === null || service.settings != null || seen.file?.isOurs === false;
  const takenOver = isOwned(resource) && rereads && mayMove;
  const enabling =
    enabled !== undefined
      ? enabled.to === 'true'
        ? ('enable' as const)
        : ('disable' as const)
      : takenOver && body.enabled === true && isEnabled(seen.unit) === true
        ? ('reenable' as const)
        : null;
  return { ...base, goes: false, enabling, process: processOf(item) };
}

function processOf({ resource, seen, difference }: ServiceItem): Process | null {
  if (difference.action === 'restart' || difference.action === 'reload') return difference.action;
  const running = difference.changes.find(({ field }) => field === 'running');
  if (running !== undefined) return running.to === 'true' ? 'start' : 'stop';
  // Restarts a running service if its unit file was deleted and is created again.
  return difference.action === 'create' && isUp(seen.unit) && bodyOf(resource).running !== false ? 'restart' : null;
}

function removalOf(item: ServiceItem, machine: Machine): Work {
  const { resource, seen } = item;
  const before = item.before as ServiceBefore;
  const parts = fileRemovals(resource, before, seen, machine.copies);
  const changeFiles = async (): Promise<void> => {
    for (const { file, found, before: was } of parts) {
      if (was.was !== 'absent' && file.path.startsWith(`${dropInDirectory(resource)}/`)) makeDropIns(item, machine);
      await writtenPart(resource, file).restore(was, found.seen, machine);
    }
    if (!before.dropInDirectory) pruneDropIns(item, machine);
  };
  const base = {
    name: unitOf(resource),
    item,
    changeFiles: parts.length > 0 ? changeFiles : null,
    rereads: parts.length > 0,
    failure: null,
  };
  if (!before.existed) return { ...base, goes: true, enabling: null, process: null };
  const runs = runningBack(resource, before, seen, parts);
  const replaced = restartsFor(resource, item.difference.changes);
  const process = runs === null ? (replaced && isUp(seen.unit) ? 'restart' : null) : runs ? 'start' : 'stop';
  const back = enablingBack(resource, before, seen, parts);
  const foreignAgain = parts.some(({ file }) => file.path === unitFile(resource).path);
  const enabling =
    back ?? (foreignAgain && isEnabled(seen.unit) === true && before.enabled !== null ? 'reenable' : null);
  return { ...base, goes: false, enabling, process };
}

/** Creates the drop-in directory directly, so that it does not count as a parent of a declared file. */
function makeDropIns({ resource }: ServiceItem, machine: Machine): void {
  machine.walk.within(dropInDirectory(resource), 'make', (parent, name) => {
    try {
      makeDirectory(parent.child(name), 0o755);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw hostFailure(error, `create the directory ${dropInDirectory(resource)}`);
    }
    machine.changedDirectory(parent.path);
  });
}

/** Removes the drop-in directory, which did not exist before, if it is empty. */
function pruneDropIns({ resource }: ServiceItem, machine: Machine): void {
  removeEmptyDirectory(dropInDirectory(resource), machine);
}

async function attempt(work: Work, action: (() => Promise<void>) | null): Promise<void> {
  if (action === null || work.failure !== null) return;
  try {
    await action();
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    work.failure = error.message;
  }
}

function needsReload({ rereads, goes, enabling, process, item, name }: Work): boolean {
  if (rereads || goes || enabling !== null) return true;
  return process !== null && process !== 'stop' && (item.seen.unit.needsReload || dropInsChanged(item.seen.unit, name));
}

/** Runs systemctl once for all units. If that fails, runs it for each unit, so that each gets its own error. */
async function together(doing: string, works: Work[], verb: readonly string[], machine: Machine): Promise<void> {
  const pending = works.filter(({ failure }) => failure === null);
  if (pending.length === 0) return;
  const timeLimit = machine.limits.scriptMs;
  const all = await systemctl(verb, names(pending), timeLimit, machine);
  if (all.exitCode === 0) return;
  for (const work of pending) {
    const result = pending.length === 1 ? all : await systemctl(verb, [work.name], timeLimit, machine);
    if (result.exitCode !== 0)
      work.failure = `${work.name} could not be ${past(doing)}: ${failureText(result, 'systemctl', timeLimit, lastLine)}`;
  }
}

const past = (doing: string): string => (doing === 'stop' ? 'stopped' : `${doing}d`);

const stopAlone = ['stop', '--job-mode=ignore-dependencies'];

/**
 * Stops, restarts, reloads, and starts units, with one call each.
 * @returns the results of systemctl, by subcommand
 */
async function process(due: readonly Work[], machine: Machine): Promise<Map<Process, CommandResult>> {
  const answers = new Map<Process, CommandResult>();
  for (const verb of ['stop', 'restart', 'reload', 'start'] as const) {
    const some = due.filter((work) => work.process === verb);
    if (some.length === 0) continue;
    const crashing = verb === 'start' ? some.filter(({ item }) => isCrashing(item.seen.unit)) : [];
    // Stops crashing units first. Otherwise, systemd could restart such a unit before the start, and its restart
    // counter would suggest that this start failed. A plain stop would also stop the units that require this one, and
    // the start would not start them again.
    if (crashing.length > 0) await systemctl(stopAlone, names(crashing), machine.limits.scriptMs, machine);
    // Resets the start limit: systemd refuses to start a unit that was started too often, even on request.
    if (verb === 'start' || verb === 'restart')
      await systemctl(['reset-failed'], names(some), machine.limits.scriptMs, machine);
    answers.set(verb, await systemctl([verb], names(some), machine.limits.scriptMs, machine));
  }
  return answers;
}
