import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import {
  areOfNamespace,
  isOnSystemWithout,
  lacksCapabilityPrograms,
  readCapabilities,
  writeCapabilities,
} from '../../host/files/capabilities.ts';
import { asCreated, sharedWriteBits } from '../../host/files/decide-ownership.ts';
import type { Inspected, Ownership } from '../../host/files/inspect.ts';
import { expectExclusive, onObject } from './exclusive-object.ts';
import type { Difference, Machine } from './provider.ts';

/** Declares, observes, and restores the capabilities of a program file. */

export interface SeenCapabilities {
  /** The text of setcap(8), such as `cap_chown,cap_net_raw=ep`; empty if the file has none, or is missing. */
  text: string;
  /** Whether the file system has no capabilities. */
  isUnsupported?: true;
  /** Whether the machine lacks the programs. */
  lacksPrograms?: true;
}

/** @throws HostFailure if a capability has another form, such as one from an orchestrator of another release */
export function checkCapabilities(capabilities: readonly string[] | null | undefined): void {
  for (const name of capabilities ?? [])
    if (!/^cap_[a-z_]{3,40}$/.test(name))
      throw new HostFailure(`\`capabilities\` has one that this agent does not understand: ${name.slice(0, 100)}`);
}

const unsupported: SeenCapabilities = { text: '', isUnsupported: true };

/** Reads the capabilities of a file, if it exists. @throws HostFailure */
export async function lookAtCapabilities(path: string, found: Inspected, machine: Machine): Promise<SeenCapabilities> {
  if (lacksCapabilityPrograms()) return { text: '', lacksPrograms: true };
  if (isOnSystemWithout(path)) return unsupported;
  if (found.type !== 'file') return { text: '' };
  const text = await onObject(path, 'file', 'capabilities', machine, readCapabilities);
  return text === null ? unsupported : { text };
}

/** Returns the names of permitted and effective capabilities, in order; null for a text of another kind. */
function namesIn(text: string): string[] | null {
  if (text === '') return [];
  const names = /^([a-z0-9_]+(?:,[a-z0-9_]+)*)[=+](?:ep|pe)$/.exec(text)?.[1];
  return names === undefined ? null : names.split(',').sort();
}

const shown = (text: string): string | null => (text === '' ? null : (namesIn(text)?.join(', ') ?? text));

export const textOfCapabilities = (names: readonly string[]): string =>
  names.length === 0 ? '' : `${[...names].sort().join(',')}=ep`;

/**
 * @param declared null or undefined if the resource declares no capabilities
 * @throws HostFailure if the file system has no capabilities, and in a drift check if the machine lacks the programs
 */
export function diffCapabilities(
  path: string,
  seen: SeenCapabilities | undefined,
  declared: readonly string[] | null | undefined,
  isDrift: boolean,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  if (seen === undefined || declared == null) return { changes: [], awaits: [] };
  if (seen.isUnsupported === true && declared.length > 0) throw withoutCapabilities(path);
  const lacks = seen.lacksPrograms === true && declared.length > 0;
  if (lacks && isDrift) throw new HostFailure(lacking(path));
  const changes = changesBetween(seen.text, textOfCapabilities(declared));
  return { changes, awaits: lacks ? [{ kind: 'programs', message: lacking(path) }] : [] };
}

function changesBetween(found: string, wanted: string): FieldChange[] {
  const [from, to] = [shown(found), shown(wanted)];
  return from === to ? [] : [{ field: 'capabilities', from, to }];
}

const withoutCapabilities = (path: string): HostFailure =>
  new HostFailure(
    `cannot set the capabilities of ${path}: its file system has none; declare \`capabilities\` for a path on another one`,
  );

/**
 * Returns the capabilities to record for the removal.
 * @param before the record; undefined if there is none
 * @throws HostFailure if setcap cannot restore them as they are
 */
export function recordedCapabilities(
  path: string,
  before: string | undefined,
  seen: SeenCapabilities | undefined,
): string | undefined {
  if (before !== undefined || seen === undefined || seen.lacksPrograms === true) return before;
  if (areOfNamespace(seen.text))
    throw new HostFailure(
      `${path} has capabilities of a user namespace (${seen.text}), which a removal could not restore: remove them with "setcap -r ${path}", and apply again`,
    );
  return seen.text;
}

const lacking = (path: string): string =>
  `\`capabilities\` of ${path} needs the programs getcap and setcap; install the package libcap2-bin or libcap`;

/** Reports whether only root may write a file. The bits of the group include the mask of an ACL. */
const isOnlyRoots = ({ uid, mode }: Pick<Ownership, 'uid' | 'mode'>): boolean =>
  uid === asCreated(0).uid && (mode & sharedWriteBits) === 0;

/**
 * Refuses to give capabilities to a program that another user has written, or can write.
 * @param kept the current file if its content stays
 * @param target owner and permissions after the change
 * @throws HostFailure
 */
export function expectOnlyRootWrites(path: string, kept: Ownership | null, target: Ownership): void {
  if (!isOnlyRoots(target))
    throw new HostFailure(
      `users other than root can write ${path}, so it gets no capabilities: declare \`owner: root\` and a \`mode\` such as "0755"`,
    );
  if (kept !== null && !isOnlyRoots(kept))
    throw new HostFailure(
      `users other than root may have written ${path}, so it gets no capabilities: declare its content, or inspect it and make it a file that only root can write`,
    );
}

/**
 * Returns the recorded capabilities that a removal restores, and whether it leaves them out, because another user may
 * have written the program, or can write it.
 * @param kept the current file if its content stays
 * @param target owner and permissions after the removal
 */
export function restoredCapabilities(
  before: string,
  kept: Ownership | null,
  target: Ownership,
): { text: string; isLeftOut: boolean } {
  const isSafe = before === '' || (isOnlyRoots(target) && (kept === null || isOnlyRoots(kept)));
  return { text: isSafe ? before : '', isLeftOut: !isSafe };
}

/** @throws HostFailure if the machine lacks the programs to restore the capabilities, or the file system has none */
export function diffCapabilitiesRemoval(
  path: string,
  restored: string,
  seen: SeenCapabilities | undefined,
): FieldChange[] {
  if (seen === undefined) return [];
  if (seen.isUnsupported === true && restored !== '') throw withoutCapabilities(path);
  if (seen.lacksPrograms === true && restored !== '') throw new HostFailure(lacking(path));
  return changesBetween(seen.text, restored);
}

/**
 * Changes a file, and sets its capabilities.
 * @param wanted null if the file has none to set
 * @param change called with a function that sets the capabilities of a new file at its temporary path. If the file is not
 *   replaced, they are set after the change; if the agent is killed in between, the next observation finds the file
 *   without them
 * @throws HostFailure
 */
export async function changeWithCapabilities<T>(
  path: string,
  seen: SeenCapabilities | undefined,
  wanted: string | null,
  machine: Pick<Machine, 'walk'>,
  change: (finish: (temporary: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const isUnknown = seen?.lacksPrograms === true || seen?.isUnsupported === true;
  if (seen === undefined || wanted === null || (isUnknown && wanted === '')) return change(async () => {});
  // Fails before the change, because the capabilities could not be set after it.
  machine.walk.within(path, 'null', (parent) => expectExclusive(parent, path, 'capabilities'));
  const result = await change(async (temporary) => {
    if (wanted !== '') await writeCapabilities(temporary, path, wanted);
  });
  await onObject(path, 'file', 'capabilities', machine, async (object) => {
    const now = (await readCapabilities(object, path)) ?? '';
    if (shown(now) !== shown(wanted)) await writeCapabilities(object, path, wanted);
  });
  return result;
}
