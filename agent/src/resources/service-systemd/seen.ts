import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { readUnits, type UnitState } from '../../host/systemd/systemd.ts';
import type { FileBefore, SeenFile } from '../file-unix/seen.ts';
import type { Database, Machine } from '../provider/provider.ts';
import { lookAtWritten, textOf, type WrittenFile } from '../provider/written-file.ts';
import { type Body, isOurs, type ParsedUnit, parseUnit, renderDropIn, renderUnit, unitFields } from './unit-file.ts';

/** A unit of systemd as it is found, and what is recorded of it before the first change. */

export interface SeenService {
  unit: UnitState;
  /** /etc/systemd/system/NAME.service; null where it is not ours to look at. */
  file: SeenPart | null;
  /** The drop-in of ours. */
  dropIn: SeenPart;
}

/** A file that makes up the unit, with what it says; `says` is null when there is none, or none that can be read. */
export interface SeenPart {
  seen: SeenFile;
  says: ParsedUnit | null;
  isOurs: boolean;
}

export type ServiceBefore = {
  /** Whether there was such a unit. */
  existed: boolean;
  /** What was in place of the unit, once we changed it. */
  file: FileBefore | null;
  dropIn: FileBefore | null;
  /** Whether there was a directory for drop-ins. */
  dropInDirectory: boolean;
  /** systemd's word for it, once we changed whether it starts with the machine. */
  enabled: string | null;
  /** Once we started or stopped it. */
  running: boolean | null;
};

export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
export const unitOf = (resource: ResolvedResource): string => `${bodyOf(resource).name}.service`;
const unitPath = (resource: ResolvedResource): string => `/etc/systemd/system/${unitOf(resource)}`;
export const dropInDirectory = (resource: ResolvedResource): string => `${unitPath(resource)}.d`;

/** Whether the unit itself is written, not only adopted. */
export const isOwned = ({ exec_start, ensure }: Body): boolean => ensure !== 'absent' && exec_start != null;

const modeOf = ({ sensitive_fields }: ResolvedResource): WrittenFile['mode'] =>
  sensitive_fields.some((field) => (unitFields as readonly string[]).includes(field)) ? '0600' : '0644';

export const unitFile = (resource: ResolvedResource): WrittenFile => ({
  path: unitPath(resource),
  text: isOwned(bodyOf(resource)) ? renderUnit(bodyOf(resource)) : null,
  mode: modeOf(resource),
});

export function dropInFile(resource: ResolvedResource): WrittenFile {
  const body = bodyOf(resource);
  const wanted = body.ensure !== 'absent' && body.exec_start == null;
  return {
    path: `${dropInDirectory(resource)}/50-muster.conf`,
    text: wanted ? renderDropIn(body) : null,
    mode: modeOf(resource),
  };
}

/** Every unit of the operation, asked about in one call. */
export const units: Database<Map<string, UnitState>> = {
  name: 'systemd units',
  read(machine) {
    const names = machine.resourcesOf('service-systemd').map(unitOf);
    const askable = names.filter(
      (name) => /^[A-Za-z0-9_][A-Za-z0-9:_.\\@-]*\.service$/.test(name) && !/^[^@]*@\.service$/.test(name),
    );
    return readUnits([...new Set(askable)], machine.limits.checkMs, machine);
  },
};

/** @param withFile whether the unit's own file in /etc is of interest */
export async function look(resource: ResolvedResource, withFile: boolean, machine: Machine): Promise<SeenService> {
  const unit = (await machine.database(units)).get(unitOf(resource));
  if (unit === undefined) throw new HostFailure(`systemd was not asked about ${unitOf(resource)}`);
  return {
    unit,
    file: withFile ? part(lookAtWritten(resource, unitFile(resource), machine)) : null,
    dropIn: part(lookAtWritten(resource, dropInFile(resource), machine)),
  };
}

export function part(seen: SeenFile): SeenPart {
  const text = textOf(seen);
  return { seen, says: text === null ? null : parseUnit(text), isOurs: text !== null && isOurs(text) };
}

/** It runs, or is on its way there; not one that systemd keeps starting in vain. */
export const isUp = ({ active, sub }: UnitState): boolean =>
  active === 'active' || active === 'reloading' || (active === 'activating' && sub !== 'auto-restart');

/** Something of it runs, or soon will: what is to be stopped. */
export const isLive = (unit: UnitState): boolean => isUp(unit) || unit.sub === 'auto-restart';

/** What ends of itself when it has done its work: it has run, but does not go on running. */
export const runsOnce = ({ type, remainsAfterExit }: UnitState): boolean => type === 'oneshot' && !remainsAfterExit;

/**
 * Whether it starts with the machine.
 * @returns null when that is not the unit's own to say: others start it, or it was made by a generator
 */
export function isEnabled({ unitFileState }: UnitState): boolean | null {
  if (['static', 'indirect', 'generated', 'transient'].includes(unitFileState)) return null;
  // Until the next boot only is not what is meant.
  return unitFileState === 'enabled' || unitFileState === 'alias';
}

const fileChanges = new Set(['owner', 'group', 'mode', 'symlink', 'type']);

/**
 * The change of a file, told by the fields of the unit.
 * @param file what changes of it as a file
 */
export function partChanges(
  file: readonly FieldChange[],
  from: ParsedUnit | null,
  to: ParsedUnit | null,
): FieldChange[] {
  const comes = file.some((change) => change.field === 'ensure' && change.from === 'absent');
  const goes = file.some((change) => change.field === 'ensure' && change.to === 'absent');
  const replaced = file.some(({ field }) => field === 'symlink');
  // What takes the place of a link has none of its owner and permissions.
  const told = (field: string): boolean => (replaced ? field === 'symlink' : fileChanges.has(field));
  const rest = comes || goes ? [] : file.filter(({ field }) => told(field));
  if (!comes && !goes && !file.some(({ field }) => field === 'content')) return rest;
  const fields = unitFields.flatMap((field): FieldChange[] => {
    const [old, next] = [from?.fields[field] ?? null, to?.fields[field] ?? null];
    return old === next ? [] : [{ field, from: old, to: next }];
  });
  const sameOthers = JSON.stringify(from?.others ?? []) === JSON.stringify(to?.others ?? []);
  // Lines that no field stands for, and what is not a matter of fields at all, such as comments.
  const others = from !== null && to !== null && (!sameOthers || fields.length === 0);
  return [...fields, ...(others ? [{ field: 'unit_file', from: 'other lines', to: 'as declared' }] : []), ...rest];
}
