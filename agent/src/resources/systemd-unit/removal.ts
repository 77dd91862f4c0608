import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import type { FileBefore } from '../file-unix/seen.ts';
import { type WrittenFile, writtenPart } from '../file-unix/written-file.ts';
import { type ContentCopies, type Difference, type Machine, nothing, presenceDrift } from '../provider/provider.ts';
import { dropInFile, unitFile } from './declared.ts';
import {
  isEnabled,
  isLive,
  look,
  part,
  type SeenPart,
  type SeenService,
  type ServiceBefore,
  unitChanges,
} from './seen.ts';
import { type ParsedUnit, parseUnit } from './unit-file.ts';

export async function observeForRemoval(
  resource: ResolvedResource,
  before: ServiceBefore,
  machine: Machine,
): Promise<SeenService> {
  const seen = await look(resource, machine, false);
  const again = async (file: WrittenFile, was: FileBefore | null): Promise<SeenPart | null> =>
    was === null ? null : part(await writtenPart(resource, file).lookForRemoval(was, machine));
  return {
    ...seen,
    file: await again(unitFile(resource), before.file),
    dropIn: (await again(dropInFile(resource), before.dropIn)) ?? seen.dropIn,
  };
}

/** The unit file or the drop-in, with the record of its earlier state. */
interface PartBack {
  file: WrittenFile;
  found: SeenPart;
  before: FileBefore;
  difference: Difference;
}

/** Returns the files to restore: the unit file, the drop-in, both, or neither. */
export function fileRemovals(
  resource: ResolvedResource,
  before: ServiceBefore,
  { file, dropIn }: SeenService,
  copies: Pick<ContentCopies, 'read'>,
): PartBack[] {
  const all = [
    { file: unitFile(resource), found: file, before: before.file },
    { file: dropInFile(resource), found: dropIn, before: before.dropIn },
  ];
  return all.flatMap((one) => {
    const { found, before: was } = one;
    if (found === null || was === null) return [];
    const difference = writtenPart(resource, one.file).diffRemoval(was, found.seen, copies);
    return difference.action === 'none' ? [] : [{ file: one.file, found, before: was, difference }];
  });
}

export function diffRemoval(
  resource: ResolvedResource,
  before: ServiceBefore,
  seen: SeenService,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const files = fileRemovals(resource, before, seen, copies);
  const { unit } = seen;
  if (!before.existed) {
    if (files.length === 0 && !isLive(unit) && isEnabled(unit) !== true) return nothing('already removed');
    return presenceDrift();
  }
  const changes: FieldChange[] = files.flatMap(({ difference, found, before: was }) =>
    unitChanges(resource, difference.changes, found.says, saidBefore(was, copies)),
  );
  const enabled = enablingBack(resource, before, seen, files);
  if (enabled !== null)
    changes.push({ field: 'enabled', from: String(isEnabled(unit) ?? false), to: String(enabled !== 'disable') });
  const running = runningBack(resource, before, seen, files);
  if (running !== null) changes.push({ field: 'running', from: String(isLive(unit)), to: String(running) });
  if (changes.length === 0 && files.length === 0) return nothing('already in its original state');
  return { action: 'remove', changes, diff: null, message: 'restores the original state' };
}

/**
 * Reports whether the unit no longer exists and its file is not restored. Such a unit can be neither enabled nor
 * started.
 */
const isRemoved = (resource: ResolvedResource, { unit }: SeenService, files: readonly PartBack[]): boolean =>
  unit.load === 'not-found' &&
  !files.some(({ before, file }) => before.was !== 'absent' && file.path === unitFile(resource).path);

/** Returns how to restore the enablement, or null if it needs no change. */
export function enablingBack(
  resource: ResolvedResource,
  { enabled }: ServiceBefore,
  seen: SeenService,
  files: readonly PartBack[],
): 'enable' | 'enable-runtime' | 'disable' | null {
  const { unit } = seen;
  if (enabled === null || enabled === unit.unitFileState) return null;
  const isOn = isEnabled(unit) === true;
  const wasOn = ['enabled', 'alias', 'enabled-runtime'].includes(enabled);
  if (!wasOn) return isOn ? 'disable' : null;
  if (isRemoved(resource, seen, files)) return null;
  if (enabled === 'enabled-runtime') return 'enable-runtime';
  return isOn ? null : 'enable';
}

/** Returns the running state to restore, or null if it needs no change. */
export const runningBack = (
  resource: ResolvedResource,
  { running }: ServiceBefore,
  seen: SeenService,
  files: readonly PartBack[],
): boolean | null =>
  running === null || running === isLive(seen.unit) || isRemoved(resource, seen, files) ? null : running;

function saidBefore(before: FileBefore, copies: Pick<ContentCopies, 'read'>): ParsedUnit | null {
  if (before.was !== 'file' || before.content === null) return null;
  const bytes = copies.read(before.content, maxContentInMemory);
  return bytes === null ? null : parseUnit(bytes.toString('utf8'));
}
