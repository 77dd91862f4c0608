import type { FieldChange } from '@muster/protocol';
import {
  type Circumstances,
  type Difference,
  presenceDrift,
  restoring,
  typeDrift,
  withChanges,
} from '../provider/provider.ts';
import { bitsLost, notAFile, shown } from '../text-edit/text-file.ts';
import { type Declared, declaredEntry, isMounted, pathOf } from './declared.ts';
import { type Entry, fstab, parseEntry } from './fstab.ts';
import { differingOptions } from './options.ts';
import type { MountBefore, SeenMount } from './seen.ts';

const parsed = (lines: readonly { text: string }[]): Entry[] =>
  lines.map(({ text }) => parseEntry(text)).filter((entry) => entry !== null);

function lineChanges(from: readonly Entry[], to: readonly Entry[]): FieldChange[] {
  const fields: [field: string, of: (entries: readonly Entry[]) => string | null][] = [
    ['ensure', (entries) => (entries.length === 0 ? 'absent' : 'present')],
    ...(['device', 'type', 'options', 'dump', 'pass'] as const).map(
      (field): [string, (entries: readonly Entry[]) => string | null] => [
        field,
        ([first]) => (first === undefined ? null : shown(first[field])),
      ],
    ),
    ['lines', (entries) => (from.length === 0 || to.length === 0 ? null : String(entries.length))],
  ];
  return fields
    .map(([field, of]) => ({ field, from: of(from), to: of(to) }))
    .filter((change) => change.from !== change.to);
}

function liveChanges(resource: Declared, { live, options }: SeenMount): FieldChange[] {
  if (!isMounted(resource)) return live === null ? [] : [{ field: 'mounted', from: 'yes', to: 'no' }];
  if (live === null) return [{ field: 'mounted', from: 'no', to: 'yes' }];
  if (!live.isDeclared)
    return [{ field: 'live_device', from: `${live.source} (${live.type})`, to: resource.body.device ?? null }];
  const differing = differingOptions(options ?? 'defaults', live);
  return differing === null ? [] : [{ field: 'live_options', ...differing }];
}

export function diffMount(
  resource: Declared,
  seen: SeenMount,
  { purpose, willBeThere }: Pick<Circumstances, 'purpose' | 'willBeThere'>,
): Difference {
  const isAbsent = resource.body.ensure === 'absent';
  if (seen.type !== 'file' && seen.type !== 'absent') {
    if (purpose !== 'drift') throw notAFstab(resource, seen);
    return isAbsent ? presenceDrift() : typeDrift({ type: seen.type }, 'file');
  }
  const entry = declaredEntry(resource, seen.lines);
  const lines = lineChanges(parsed(seen.lines), entry === null ? [] : [entry]);
  const changes = [...lines, ...(lines.length > 0 ? bitsLost(seen) : []), ...liveChanges(resource, seen)];
  const path = pathOf(resource);
  const isMissing = isMounted(resource) && !seen.hasDirectory && purpose !== 'drift' && !willBeThere(path);
  const message = `there is no directory ${path}; declare it with directory-unix before this resource`;
  const action = isAbsent ? 'remove' : seen.lines.length === 0 ? 'create' : 'update';
  return withChanges(action, changes, { awaits: [isMissing ? { kind: 'programs', message } : null] });
}

export function diffMountRemoval(resource: Declared, before: MountBefore, seen: SeenMount): Difference {
  if (seen.type !== 'file' && seen.type !== 'absent') throw notAFstab(resource, seen);
  const lines = lineChanges(parsed(seen.lines), before.lines.was === 'absent' ? [] : parsed(before.lines.lines));
  const changes = [...lines, ...(lines.length > 0 ? bitsLost(seen) : []), ...liveRestored(before, seen)];
  return restoring(changes);
}

function liveRestored({ live: earlier }: MountBefore, { live }: SeenMount): FieldChange[] {
  if (earlier === null) return [];
  if (earlier.was === 'unmounted')
    // A file system that others mounted there stays mounted.
    return live?.isDeclared === true ? [{ field: 'mounted', from: 'yes', to: 'no' }] : [];
  if (live === null) return [{ field: 'mounted', from: 'no', to: 'yes' }];
  if (live.source !== earlier.source || live.type !== earlier.type)
    return [{ field: 'live_device', from: live.source, to: earlier.source }];
  if (live.options === earlier.options) return [];
  const from = live.options.split(',').filter((option) => !earlier.options.split(',').includes(option));
  const to = earlier.options.split(',').filter((option) => !live.options.split(',').includes(option));
  return [{ field: 'live_options', from: shown(from.join(',')), to: shown(to.join(',')) }];
}

const notAFstab = (resource: Declared, seen: SeenMount) =>
  notAFile({ ...resource, body: { ...resource.body, path: fstab } }, seen);
