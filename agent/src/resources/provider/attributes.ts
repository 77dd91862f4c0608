import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  type Attribute,
  attributeNames,
  lacksAttributePrograms,
  locks,
  readAttributes,
  unlock,
  writeAttributes,
} from '../../host/files/attributes.ts';
import { expectUnchanged, type Inspected, inodeOf, inspect } from '../../host/files/inspect.ts';
import { expectExclusive, onObject, replaced } from './exclusive-object.ts';
import type { Difference, Machine } from './provider.ts';

/** Declares, observes, and restores the attributes of a file or directory that chattr sets, such as `immutable`. */

export interface SeenAttributes {
  /** Empty if the object is missing, or if its file system has no attributes. */
  found: Attribute[];
  /** Whether the file system has no attributes. */
  isUnsupported?: true;
  /** Whether the machine lacks the programs. */
  lacksPrograms?: true;
}

/**
 * Reports whether to read the attributes: the resource declares them, or declared them before it removes the object or
 * replaces it with a link.
 */
export const concernsAttributes = (
  body: { attributes?: readonly string[] | null; ensure?: string | null; symlink?: string | null },
  succeeded: ResolvedResource | null,
): boolean =>
  body.attributes != null ||
  ((body.ensure === 'absent' || body.symlink != null) && succeeded !== null && declares(succeeded.body));

const declares = (body: object): boolean => 'attributes' in body && body.attributes != null;

/** @throws HostFailure if an attribute is unknown, such as one from an orchestrator of another release */
export function checkAttributes(attributes: readonly string[] | null | undefined): void {
  for (const name of attributes ?? [])
    if (!attributeNames.includes(name as Attribute))
      throw new HostFailure(`\`attributes\` has one that this agent does not understand: ${name.slice(0, 100)}`);
}

/** Reads the attributes of a file or directory, if it exists. @throws HostFailure */
export async function lookAtAttributes(path: string, found: Inspected, machine: Machine): Promise<SeenAttributes> {
  if (lacksAttributePrograms()) return { found: [], lacksPrograms: true };
  if (found.type !== 'file' && found.type !== 'directory') return { found: [] };
  const read = await onObject(path, found.type, 'attributes', machine, readAttributes);
  return read === null ? { found: [], isUnsupported: true } : { found: read };
}

const shown = (attributes: readonly string[]): string | null =>
  attributes.length === 0 ? null : [...attributes].sort().join(', ');

/**
 * @param declared null or undefined if the resource declares no attributes
 * @throws HostFailure if the file system has no attributes, and in a drift check if the machine lacks the programs
 */
export function diffAttributes(
  path: string,
  seen: SeenAttributes | undefined,
  declared: readonly string[] | null | undefined,
  isDrift: boolean,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  if (seen === undefined || declared == null) return { changes: [], awaits: [] };
  if (seen.isUnsupported === true && declared.length > 0)
    throw new HostFailure(
      `cannot set the attributes of ${path}: its file system has none; declare \`attributes\` for a path on another one`,
    );
  // Without the programs, attributes are unknown, but an empty list has none to set.
  const lacks = seen.lacksPrograms === true && declared.length > 0;
  if (lacks && isDrift) throw new HostFailure(lacking(path));
  const [from, to] = [shown(seen.found), shown(declared)];
  return {
    changes: from === to ? [] : [{ field: 'attributes', from, to }],
    awaits: lacks ? [{ kind: 'programs', message: lacking(path) }] : [],
  };
}

const lacking = (path: string): string =>
  `\`attributes\` of ${path} needs the programs lsattr and chattr; install the package e2fsprogs`;

/**
 * @param before the recorded attributes
 * @throws HostFailure if the machine lacks the programs to restore them
 */
export function diffAttributesRemoval(
  path: string,
  before: readonly string[] | undefined,
  seen: SeenAttributes | undefined,
): FieldChange[] {
  if (before === undefined || seen === undefined) return [];
  if (seen.lacksPrograms === true && before.length > 0) throw new HostFailure(lacking(path));
  const [from, to] = [shown(seen.found), shown(before)];
  return from === to ? [] : [{ field: 'attributes', from, to }];
}

/** Adds the attributes to the record of an object, unless it already has them or they are unknown. */
export const rememberAttributes = <T extends { attributes?: Attribute[] }>(
  before: T,
  seen: SeenAttributes | undefined,
): T =>
  seen === undefined || seen.lacksPrograms === true || before.attributes !== undefined
    ? before
    : { ...before, attributes: seen.found };

/**
 * Changes an object. Before, clears the attributes that prevent changes, and afterwards sets the wanted ones. If the
 * change fails, the former ones are set again. If the agent is killed in between, the next observation finds the object
 * without its attributes.
 * @param wanted null if the object is not a file or directory afterwards
 * @param change called with the inspected object, whose time of change differs after attributes were cleared
 * @throws HostFailure
 */
export async function changeWithAttributes<T>(
  object: { path: string; found: Inspected; type: 'file' | 'directory'; attributes: SeenAttributes | undefined },
  wanted: readonly string[] | null | undefined,
  machine: Pick<Machine, 'walk'>,
  change: (found: Inspected) => Promise<T>,
): Promise<T> {
  const { path, found, type, attributes } = object;
  const isNoneToSet = attributes?.lacksPrograms === true && (wanted ?? []).length === 0;
  if (attributes === undefined || isNoneToSet) return change(found);
  const set = (names: readonly string[]): Promise<void> =>
    onObject(path, type, 'attributes', machine, (at) => writeAttributes(at, path, names as Attribute[]));
  // Fails before the change, because the attributes could not be set after it.
  if (type === 'file') machine.walk.within(path, 'null', (parent) => expectExclusive(parent, path, 'attributes'));
  const isLocked = attributes.found.some((name) => locks.includes(name));
  let result: T;
  try {
    result = await change(isLocked ? await unlocked(path, found, machine) : found);
  } catch (error) {
    if (isLocked) await set(attributes.found).catch(() => {});
    throw error;
  }
  if (wanted != null) await set(wanted);
  return result;
}

async function unlocked(path: string, found: Inspected, machine: Pick<Machine, 'walk'>): Promise<Inspected> {
  if (found.type !== 'file' && found.type !== 'directory') return found;
  if (found.type === 'file') machine.walk.within(path, 'null', (parent, name) => expectUnchanged(parent, name, found));
  await onObject(path, found.type, 'attributes', machine, unlock);
  const now = found.type === 'file' ? inspect(machine.walk, path, false) : found;
  if (now.type !== found.type || inodeOf(now) !== inodeOf(found)) throw replaced(path);
  return { ...found, stamp: now.stamp };
}
