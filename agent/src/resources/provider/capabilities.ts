import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import {
  capabilitiesIn,
  lacksCapabilityPrograms,
  readCapabilities,
  writeCapabilities,
} from '../../host/files/capabilities.ts';
import { asCreated } from '../../host/files/decide-ownership.ts';
import type { Inspected, Ownership } from '../../host/files/inspect.ts';
import type { OpenDirectory } from '../../host/files/path-walk.ts';
import { expectExclusive, replaced } from './attributes.ts';
import type { Difference, Machine } from './provider.ts';

/** Declares, observes, and restores the capabilities of a file, such as `cap_net_raw=ep`. */

export interface SeenCapabilities {
  /** Text of getcap; empty if the file has no capabilities or is missing, or if its file system has none. */
  found: string;
  /** Whether the machine lacks the programs. */
  lacksPrograms?: true;
}

/** @throws HostFailure if an entry is invalid, such as one from an orchestrator of another release */
export function checkCapabilities(capabilities: readonly string[] | null | undefined): void {
  for (const entry of capabilities ?? [])
    if (!/^cap_[a-z_]+=(e?i?p|e?i)$/.test(entry))
      throw new HostFailure(
        `\`capabilities\` has an entry that this agent does not understand: ${entry.slice(0, 100)}`,
      );
}

/**
 * Reads the capabilities of a file, if it exists.
 * @throws HostFailure if a user other than root can replace the file, because the programs open it by its name
 */
export async function lookAtCapabilities(
  path: string,
  found: Inspected,
  { walk }: Pick<Machine, 'walk'>,
): Promise<SeenCapabilities> {
  if (lacksCapabilityPrograms()) return { found: '', lacksPrograms: true };
  const read = walk.within(path, 'null', (parent, name) => {
    expectExclusive(parent, path, 'capabilities');
    return found.type === 'file' ? readCapabilities(`${parent.path}/${name}`, path) : '';
  });
  if (read === null && found.type === 'file') throw replaced(path);
  return { found: await (read ?? '') };
}

const sameCapabilities = (one: string, other: string): boolean =>
  capabilitiesIn(one).join() === capabilitiesIn(other).join();

const shown = (text: string): string | null => (text === '' ? null : capabilitiesIn(text).join(', ') || '=');
const lacking = (path: string): string =>
  `\`capabilities\` of ${path} needs the programs getcap and setcap; install the package libcap2-bin or libcap`;

/** Returns the text for setcap. */
export const capabilityText = (declared: readonly string[]): string => declared.join(' ');

/** Reports whether the file lacks declared capabilities. */
export function gainsCapabilities(
  seen: SeenCapabilities | undefined,
  declared: readonly string[] | null | undefined,
): boolean {
  const found = capabilitiesIn(seen?.found ?? '');
  return seen !== undefined && (declared ?? []).some((entry) => !found.includes(entry));
}

/**
 * @param declared null or undefined if the resource declares no capabilities
 * @throws HostFailure in a drift check if the machine lacks the programs
 */
export function diffCapabilities(
  path: string,
  seen: SeenCapabilities | undefined,
  declared: readonly string[] | null | undefined,
  isDrift: boolean,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  if (seen === undefined || declared == null) return { changes: [], awaits: [] };
  const lacks = seen.lacksPrograms === true;
  if (lacks && isDrift) throw new HostFailure(lacking(path));
  const wanted = capabilityText(declared);
  return {
    changes: sameCapabilities(seen.found, wanted)
      ? []
      : [{ field: 'capabilities', from: shown(seen.found), to: shown(wanted) }],
    awaits: lacks ? [{ kind: 'programs', message: lacking(path) }] : [],
  };
}

/**
 * Reports whether only root, or the agent's own user, can write the file. Another user who can write it could
 * choose the program that gets the capabilities.
 * @param mode permissions of the file, with those of all entries of its ACL
 */
export const isProtected = ({ uid, mode }: Ownership): boolean => uid === asCreated(0).uid && (mode & 0o022) === 0;

/** Returns the error for a file that others can write. */
export const unprotected = (path: string): HostFailure =>
  new HostFailure(
    `\`capabilities\` of ${path} are not set, because a user other than root can write it: declare \`owner: root\`, a \`mode\` without write permission for the group and others, and its content if another user wrote it`,
  );

/**
 * @param before the recorded capabilities
 * @throws HostFailure if the machine lacks the programs to restore them
 */
export function diffCapabilitiesRemoval(
  path: string,
  before: string | undefined,
  seen: SeenCapabilities | undefined,
): FieldChange[] {
  if (before === undefined || seen === undefined) return [];
  if (seen.lacksPrograms === true && before !== '') throw new HostFailure(lacking(path));
  if (sameCapabilities(before, seen.found)) return [];
  return [{ field: 'capabilities', from: shown(seen.found), to: shown(before) }];
}

/** Adds the capabilities to the record of a file, unless it already has them. */
export const rememberCapabilities = <T extends { capabilities?: string }>(
  before: T,
  seen: SeenCapabilities | undefined,
): T => (seen === undefined || before.capabilities !== undefined ? before : { ...before, capabilities: seen.found });

/**
 * Returns a function that sets the capabilities of a file in a directory, given its path for programs; null if they are
 * not managed. Setting the owner or the content clears them, so it is called afterwards.
 * @param text as in {@link writeCapabilities}
 * @throws HostFailure if a user other than root can replace files in the directory
 */
export function capabilitySetter(
  parent: OpenDirectory,
  path: string,
  seen: SeenCapabilities | undefined,
  text: string | undefined,
): ((file: string) => Promise<void>) | null {
  if (seen === undefined || seen.lacksPrograms === true || text === undefined) return null;
  expectExclusive(parent, path, 'capabilities');
  return (file) => writeCapabilities(file, path, text);
}
