import type { ResolvedResource } from '@muster/protocol/module';
import { inspect } from '../../host/files/inspect.ts';
import { devicePath, isSameDirectory, type Mount } from '../../host/mounts.ts';
import type { Machine } from '../provider/provider.ts';
import { type LinesBefore, type PlacedLine, placedLine } from '../text-edit/placed-lines.ts';
import { linesOf, lookAtText, type SeenText } from '../text-edit/text-file.ts';
import { declaredEntry, pathOf } from './declared.ts';
import { entriesAt, fstab } from './fstab.ts';
import { isBind } from './options.ts';

export interface SeenMount extends Omit<SeenText, 'content'> {
  /** The lines of /etc/fstab for the mount point. */
  lines: PlacedLine[];
  /** The options that the declared line will have; null if the resource is declared absent. */
  options: string | null;
  hasDirectory: boolean;
  /** The mounted file system; null if nothing is mounted. `isDeclared`: whether it is the declared device. */
  live: (Mount & { isDeclared: boolean }) | null;
}

/** State before the agent's first change. `live` is null if the agent has not changed the mounted file system. */
export type MountBefore = {
  lines: LinesBefore;
  live: { was: 'unmounted' } | ({ was: 'mounted' } & { [field in keyof Mount]: string }) | null;
};

export function look(
  resource: ResolvedResource<'mount-unix'>,
  mounts: ReadonlyMap<string, Mount>,
  machine: Pick<Machine, 'walk'>,
): SeenMount {
  const { content, ...seen } = lookAtText({ ...resource, body: { ...resource.body, path: fstab } }, machine);
  const path = pathOf(resource);
  const lines = linesOf({ ...seen, content });
  const live = mounts.get(path) ?? null;
  const entry = declaredEntry(resource, lines);
  return {
    ...seen,
    lines: entriesAt(path, lines).map((index) => placedLine(lines, index)),
    options: entry?.options ?? null,
    hasDirectory: live !== null || inspect(machine.walk, path, false).type === 'directory',
    live:
      live === null
        ? null
        : { ...live, isDeclared: entry === null || isOf(entry.device, entry.type, entry.options, path, live) },
  };
}

/** Reports whether a mounted file system has the declared device and type. */
function isOf(device: string, type: string, options: string, path: string, live: Mount): boolean {
  if (isBind(options)) return isSameDirectory(device, path);
  // The kernel may report a more specific type, such as nfs4 for nfs.
  const isType = type === 'auto' || live.type === type || live.type.startsWith(type) || live.type === `fuse.${type}`;
  if (!isType) return false;
  const [declared, there] = [devicePath(device), devicePath(live.source)];
  return (
    live.source === device || live.source === device.replace(/\/+$/, '') || (declared !== null && declared === there)
  );
}
