import type { FieldChange } from '@muster/protocol';
import { HostFailure } from '../../host/failure.ts';
import { fstab, parseEntry } from '../mount-unix/fstab.ts';
import {
  type Circumstances,
  type Difference,
  presenceDrift,
  restoring,
  typeDrift,
  withChanges,
} from '../provider/provider.ts';
import type { PlacedLine } from '../text-edit/placed-lines.ts';
import { bitsLost, notAFile, shown } from '../text-edit/text-file.ts';
import { type Declared, declaredEntry, isAbsent, priorityIn, type SeenSwap, type SwapBefore, sizeOf } from './seen.ts';

/** Ownership that prevents other users from reading the memory of programs. */
export const ownership = { uid: 0, gid: 0, mode: 0o600 };

type State = { size: number; uid: number; gid: number; mode: number; uuid?: string };

function fileChanges(from: State | null, to: State | null): FieldChange[] {
  const mode = (state: State) => `0${state.mode.toString(8)}`;
  const fields: [field: string, of: (state: State) => string][] = [
    ['size', ({ size }) => sizeText(size)],
    ['owner', ({ uid, gid }) => `${uid}:${gid}`],
    ['mode', mode],
    ...(to?.uuid === undefined ? [] : [['uuid', ({ uuid = '' }) => uuid] as [string, (state: State) => string]]),
  ];
  if (from === null && to === null) return [];
  if (from === null || to === null)
    return [
      { field: 'ensure', from: from === null ? 'absent' : 'present', to: to === null ? 'absent' : 'present' },
      { field: 'size', from: from && sizeText(from.size), to: to && sizeText(to.size) },
    ];
  return fields
    .map(([field, of]) => ({ field, from: of(from), to: of(to) }))
    .filter((change) => change.from !== change.to);
}

/** Returns a size in the format of a declaration, or in bytes. */
function sizeText(bytes: number): string {
  const [unit, factor] = bytes % 1024 ** 3 === 0 ? ['G', 1024 ** 3] : ['M', 1024 ** 2];
  return bytes % Number(factor) === 0 ? `${bytes / Number(factor)}${unit}` : `${bytes} bytes`;
}

const optionsOf = (lines: readonly { text: string }[]): string | null =>
  lines[0] === undefined ? null : (parseEntry(lines[0].text)?.options ?? null);

/** @param to options in the resulting line; null for no line */
function lineChanges(from: readonly PlacedLine[], to: string | null, count = to === null ? 0 : 1): FieldChange[] {
  const changes: FieldChange[] = [];
  if ((from.length === 0) !== (count === 0))
    changes.push({
      field: 'line',
      from: from.length === 0 ? 'absent' : 'present',
      to: count === 0 ? 'absent' : 'present',
    });
  const options = optionsOf(from);
  if (options !== to) changes.push({ field: 'options', from: options && shown(options), to: to && shown(to) });
  if (from.length > 0 && count > 0 && from.length !== count)
    changes.push({ field: 'lines', from: String(from.length), to: String(count) });
  return changes;
}

/** @param priority the declared priority; null for any */
function liveChanges(live: number | null, isUsed: boolean, priority: number | null): FieldChange[] {
  if (!isUsed) return live === null ? [] : [{ field: 'active', from: 'yes', to: 'no' }];
  if (live === null) return [{ field: 'active', from: 'no', to: 'yes' }];
  return priority === null || live === priority
    ? []
    : [{ field: 'live_priority', from: String(live), to: String(priority) }];
}

/** @throws HostFailure if no swap file can exist at the path */
function expectPossible(resource: Declared, { found, file, refused, hasRoom, live }: SeenSwap): void {
  const { path, size } = resource.body;
  const isNew = file?.size !== sizeOf(resource);
  if (found === 'other')
    throw new HostFailure(`${path} exists and is not a swap file: move it, or declare another path`);
  if (isAbsent(resource)) return;
  if (isNew && refused === 'btrfs')
    throw new HostFailure(
      `${path} is on btrfs, which copies blocks when they are written, so the agent creates no swap file there: declare a path on another file system`,
    );
  if (isNew && refused !== null)
    throw new HostFailure(
      `${path} is on ${refused}, where the kernel cannot use a swap file: declare a path on another file system`,
    );
  if (file?.hasHoles === true && live === null)
    throw new HostFailure(
      `${path} has holes, so the kernel cannot use it for swap: delete it, and the agent will create it without holes`,
    );
  if (!hasRoom) throw new HostFailure(`the file system of ${path} has too little free space for ${size}`);
}

export function diffSwap(resource: Declared, seen: SeenSwap, { purpose }: Pick<Circumstances, 'purpose'>): Difference {
  const absent = isAbsent(resource);
  if (purpose !== 'drift') {
    expectAnFstab(resource, seen);
    expectPossible(resource, seen);
  } else if (seen.found === 'other') return absent ? presenceDrift() : typeDrift({ type: 'other file' }, 'swap file');
  const options = declaredEntry(resource, seen.lines)?.options ?? null;
  const lines = lineChanges(seen.lines, options);
  const changes = [
    ...fileChanges(seen.file, absent ? null : { ...ownership, size: sizeOf(resource) }),
    ...lines,
    ...(lines.length > 0 ? bitsLost(seen.fstab) : []),
    ...liveChanges(seen.live, !absent, priorityIn(options ?? '')),
  ];
  const missing = seen.missing === null ? null : { kind: 'programs' as const, message: seen.missing };
  return withChanges(absent ? 'remove' : seen.file === null ? 'create' : 'update', changes, { awaits: [missing] });
}

export function diffSwapRemoval(resource: Declared, before: SwapBefore, seen: SeenSwap): Difference {
  expectAnFstab(resource, seen);
  if (seen.found === 'other')
    throw new HostFailure(`${resource.body.path} is no longer a swap file: move it, and remove the module again`);
  const { file, lines, live } = before;
  const earlier = lines.was === 'absent' ? [] : lines.lines;
  const restored = lineChanges(seen.lines, optionsOf(earlier), earlier.length);
  const changes = [
    ...fileChanges(seen.file, file),
    ...restored,
    ...(restored.length > 0 ? bitsLost(seen.fstab) : []),
    // The kernel chooses a negative priority, which cannot be declared.
    ...liveChanges(seen.live, live !== null, live !== null && live >= 0 ? live : null),
  ];
  return restoring(changes);
}

function expectAnFstab(resource: Declared, { fstab: seen }: SeenSwap): void {
  if (seen.type === 'file' || seen.type === 'absent') return;
  throw notAFile({ ...resource, body: { ...resource.body, path: fstab } }, seen);
}
