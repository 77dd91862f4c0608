import type { ResolvedResource } from '@muster/protocol/module';
import { readUnits } from '../../host/systemd/systemd.ts';
import { fileInBrief, fileWeight } from '../file-unix/seen.ts';
import { type WrittenFile, writtenPart } from '../file-unix/written-file.ts';
import { changedFields, type Difference, type Json, type Machine, type Provider } from '../provider/provider.ts';
import { confirmationOf } from './confirmation.ts';
import { bodyOf, dropInDirectory, dropInFile, serviceOf, unitFile, unitOf, unitTypes } from './declared.ts';
import { diffService, restartsFor } from './diff.ts';
import { execute } from './execute.ts';
import { diffRemoval, observeForRemoval } from './removal.ts';
import { isUp, look, type SeenPart, type SeenService, type ServiceBefore } from './seen.ts';

/** The members that the providers of all systemd kinds share. */
export const unitProvider = {
  recheckable: false,
  // The unit may be a server that other resources need.
  bringsToDependents: () => ['databases', 'servers'],
  watched: watchedOf,

  observe: (resource, _circumstances, machine) => look(resource, machine),

  diff: diffService,
  inBrief: (seen): Json => JSON.parse(JSON.stringify({ ...seen, file: brief(seen.file), dropIn: brief(seen.dropIn) })),
  weight: ({ file, dropIn }) => (file === null ? 0 : fileWeight(file.seen)) + fileWeight(dropIn.seen),

  async remember(resource, seen, difference, before, machine) {
    const { unit, file, dropIn } = seen;
    const body = bodyOf(resource);
    const existed = unit.load !== 'not-found';
    const record: ServiceBefore = {
      ...(before ?? {
        existed,
        file: null,
        dropIn: null,
        dropInDirectory: hasDropIns(resource, machine),
        enabled: null,
        running: null,
      }),
    };
    const changed = changedFields(difference);
    const goes = body.ensure === 'absent';
    const keep = (declared: WrittenFile, part: SeenPart, was: ServiceBefore['file']) =>
      writtenPart(resource, declared).remember(part.seen, was, machine);
    const fileWas = record.file;
    if (file !== null) record.file = await keep(unitFile(resource), file, record.file);
    record.dropIn = await keep(dropInFile(resource), dropIn, record.dropIn);
    if (!existed) return record;
    if (record.enabled === null && (changed.has('enabled') || goes || (fileWas === null && record.file !== null)))
      record.enabled = unit.unitFileState;
    if (record.running === null && (changed.has('running') || goes)) record.running = isUp(unit);
    return record;
  },

  observeForRemoval,
  diffRemoval: (resource, before, seen, _circumstances, copies) => diffRemoval(resource, before, seen, copies),

  together: execute,
  runs: ({ unit }) => isUp(unit),

  /**
   * Waits for requests that the killed agent sent and that systemd is still executing, so that their result is
   * observed.
   */
  async recover(machine) {
    const { clock, limits } = machine;
    const deadline = clock.monotonic() + limits.scriptMs;
    const names = [...new Set(unitTypes.flatMap((type) => machine.resourcesOf(type).map(unitOf)))];
    while (clock.monotonic() < deadline) {
      const found = await readUnits(names, limits.checkMs, machine);
      if (![...found.values()].some(({ hasJob }) => hasJob)) return;
      await new Promise<void>((resolve) => clock.after(recheckMs, resolve));
    }
  },

  wasApplied(resource, brief, seenNow, original) {
    const then = (brief as unknown as SeenService).unit;
    const now = seenNow.unit;
    // If a restored field takes effect only when the unit starts, the removal is complete only if the running unit was
    // restarted.
    if (original.action === 'remove' && bodyOf(resource).ensure !== 'absent') {
      const restarts = isUp(then) && isUp(now) && restartsFor(resource, original.changes);
      return !restarts || now.invocation !== then.invocation;
    }
    const untriggered = { purpose: 'apply', reloadBy: [], restartBy: [], succeeded: resource } as const;
    if (diffService(resource, seenNow, untriggered).action !== 'none') return false;
    // The agent may have been killed before it checked the service.
    if (confirms(resource) && startsOrReloads(original)) return false;
    // A new invocation has read all files again, whether or not the agent requested the restart.
    const again = now.invocation !== then.invocation;
    if (original.action === 'restart') return again;
    return original.action !== 'reload' || again || now.changedAt !== then.changedAt;
  },
} satisfies Partial<Provider<SeenService, ServiceBefore>>;

const confirms = (resource: ResolvedResource): boolean => {
  const service = serviceOf(resource);
  return service !== null && confirmationOf(service) !== null;
};

/** Reports whether the difference includes an action that is checked. */
const startsOrReloads = ({ action, changes }: Difference): boolean =>
  action === 'restart' || action === 'reload' || changes.some(({ field, to }) => field === 'running' && to === 'true');

const recheckMs = 100;

/** Targets through which units usually start at boot. */
const targets = [
  ...['multi-user', 'graphical', 'default', 'basic', 'sysinit', 'network', 'network-online'],
  ...['timers', 'sockets', 'paths', 'local-fs', 'remote-fs', 'swap'],
];

/**
 * Returns the paths to watch. systemd creates the link in /run whenever the unit starts and removes it when the unit
 * stops.
 */
function watchedOf(resource: ResolvedResource): string[] {
  const unit = unitOf(resource);
  return [
    unitFile(resource).path,
    dropInFile(resource).path,
    `/usr/lib/systemd/system/${unit}`,
    `/run/systemd/units/invocation:${unit}`,
    ...targets.map((target) => `/etc/systemd/system/${target}.target.wants/${unit}`),
  ];
}

const brief = (part: SeenPart | null): SeenPart | null =>
  part === null ? null : { ...part, seen: fileInBrief(part.seen) };

function hasDropIns(resource: ResolvedResource, machine: Machine): boolean {
  const open = machine.walk.open(dropInDirectory(resource), 'null');
  if (open === null) return false;
  machine.walk.release(open);
  return true;
}
