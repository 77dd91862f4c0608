import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { readUnits, type UnitState } from '../../host/systemd/systemd.ts';
import type { FileBefore, SeenFile } from '../file-unix/seen.ts';
import { textOf, writtenPart } from '../file-unix/written-file.ts';
import type { Database, Machine } from '../provider/provider.ts';
import {
  dropInFile,
  maskTarget,
  needsFile,
  otherOf,
  serviceOf,
  unitFile,
  unitOf,
  unitTypes,
  unmasks,
} from './declared.ts';
import { isOwn, type ParsedUnit, parseUnit, unitFields } from './unit-file.ts';

/** Observes a systemd unit, and records its state before the first change. */

export interface SeenService {
  unit: UnitState;
  /** The unit's file in /etc/systemd/system, or null if the agent does not manage it. */
  file: SeenPart | null;
  dropIn: SeenPart;
}

/** A file of the unit, with its parsed text. `says` is null if the file is missing or cannot be read. */
export interface SeenPart {
  seen: SeenFile;
  says: ParsedUnit | null;
  isOurs: boolean;
}

export type ServiceBefore = {
  /** Whether the unit existed before the agent first changed it. */
  existed: boolean;
  /** The unit file before the agent changed it. */
  file: FileBefore | null;
  dropIn: FileBefore | null;
  /** Whether the drop-in directory existed before the agent first changed it. */
  dropInDirectory: boolean;
  /** systemd's enablement state before the agent first changed it. */
  enabled: string | null;
  /** Whether the unit was running before the agent first started or stopped it. */
  running: boolean | null;
};

/** States of all units in the operation, queried in one call. */
export const units: Database<Map<string, UnitState>> = {
  name: 'systemd units',
  read(machine) {
    const names = unitTypes.flatMap((type) => machine.resourcesOf(type).map(unitOf));
    const askable = names.filter(
      (name) => /^[A-Za-z0-9_-][A-Za-z0-9:_.\\@-]*\.[a-z]+$/.test(name) && !/^[^@]*@\.[a-z]+$/.test(name),
    );
    return readUnits([...new Set(askable)], machine.limits.checkMs, machine);
  },
};

/**
 * Observes a unit.
 * @param withFile whether to read the unit's own file in /etc
 */
export async function look(
  resource: ResolvedResource,
  machine: Machine,
  withFile = needsFile(resource),
): Promise<SeenService> {
  const unit = (await machine.database(units)).get(unitOf(resource));
  if (unit === undefined) throw new HostFailure(`systemd was not queried for ${unitOf(resource)}`);
  return {
    unit,
    file: withFile ? ownFile(resource, part(writtenPart(resource, unitFile(resource)).look(machine))) : null,
    dropIn: part(writtenPart(resource, dropInFile(resource)).look(machine)),
  };
}

/** Returns null for a file that others wrote, if the agent only has to remove the link that masks the unit. */
const ownFile = (resource: ResolvedResource, file: SeenPart): SeenPart | null =>
  unmasks(resource) && !isMask(file.seen) ? null : file;

/** Reports whether the unit file is the link that masks the unit. */
export const isMask = ({ found }: SeenFile): boolean => found.type === 'symlink' && found.target === maskTarget;

export function part(seen: SeenFile): SeenPart {
  const text = textOf(seen);
  return { seen, says: text === null ? null : parseUnit(text), isOurs: text !== null && isOwn(text) };
}

/** Reports whether the unit runs or is starting. A unit that systemd keeps restarting after failures does not count. */
export const isUp = ({ active, sub }: UnitState): boolean =>
  active === 'active' || active === 'reloading' || (active === 'activating' && sub !== 'auto-restart');

/** Reports whether the unit is running or waits for an automatic restart. Only such a unit can be stopped. */
export const isLive = (unit: UnitState): boolean => isUp(unit) || unit.sub === 'auto-restart';

/** Reports whether systemd restarts the unit repeatedly, and the unit is not up now. */
export const isCrashing = (unit: UnitState): boolean =>
  !isUp(unit) && (unit.sub === 'auto-restart' || unit.restarts > 0);

/**
 * Reports whether the unit is meant to stop by itself once it has finished. Such a unit does not need to keep running.
 */
export const runsOnce = ({ type, remainsAfterExit }: UnitState): boolean => type === 'oneshot' && !remainsAfterExit;

/**
 * Reports whether the unit starts at boot.
 * @returns null if the unit does not decide that: other units start it, or a generator created it
 */
export function isEnabled({ unitFileState }: UnitState): boolean | null {
  if (['static', 'indirect', 'generated', 'transient'].includes(unitFileState)) return null;
  // `enabled-runtime` lasts only until the next boot and does not count.
  return unitFileState === 'enabled' || unitFileState === 'alias';
}

/**
 * Translates changes to the unit file or drop-in into fields of the resource.
 * @param file changes to the file, as file fields
 */
export const unitChanges = (
  resource: ResolvedResource,
  file: readonly FieldChange[],
  from: ParsedUnit | null,
  to: ParsedUnit | null,
): FieldChange[] => (serviceOf(resource) === null ? wholeChanges(resource, file) : partChanges(file, from, to));

/** Translates changes to the file of a `unit-systemd`, whose content is one field. */
function wholeChanges(resource: ResolvedResource, file: readonly FieldChange[]): FieldChange[] {
  const { settings, content, masked } = otherOf(resource);
  const whole = new Set(['ensure', 'content', 'symlink']);
  const ownership = file.filter(({ field }) => !whole.has(field));
  if (ownership.length === file.length) return ownership;
  if (masked != null && content == null && settings == null)
    return [{ field: 'masked', from: String(!masked), to: String(masked) }];
  const { from, to } = file.find(({ field }) => field === 'content') ?? { from: 'present', to: null };
  return [{ field: settings == null ? 'content' : 'settings', from, to }];
}

const fileChanges = new Set(['owner', 'group', 'mode', 'symlink', 'type']);

/** Translates changes to a file of a `service-systemd`, whose settings are fields. */
function partChanges(file: readonly FieldChange[], from: ParsedUnit | null, to: ParsedUnit | null): FieldChange[] {
  const comes = file.some((change) => change.field === 'ensure' && change.from === 'absent');
  const goes = file.some((change) => change.field === 'ensure' && change.to === 'absent');
  const replaced = file.some(({ field }) => field === 'symlink');
  // A file that replaces a link does not keep the link's owner and permissions.
  const isReported = (field: string): boolean => (replaced ? field === 'symlink' : fileChanges.has(field));
  const rest = comes || goes ? [] : file.filter(({ field }) => isReported(field));
  if (!comes && !goes && !file.some(({ field }) => field === 'content')) return rest;
  const fields = unitFields.flatMap((field): FieldChange[] => {
    const [old, next] = [from?.fields[field] ?? null, to?.fields[field] ?? null];
    return old === next ? [] : [{ field, from: old, to: next }];
  });
  const sameOthers = JSON.stringify(from?.others ?? []) === JSON.stringify(to?.others ?? []);
  // Reports changes that no field covers: lines with other settings, or text such as comments.
  const others = from !== null && to !== null && (!sameOthers || fields.length === 0);
  return [...fields, ...(others ? [{ field: 'unit_file', from: 'other lines', to: 'as declared' }] : []), ...rest];
}
