import { HostFailure } from '../../host/failure.ts';
import { fstabChanged, type Mount, mount, mountAgain, readMounts, remount, unmount } from '../../host/mounts.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { changedFields, type Database, type Machine } from '../provider/provider.ts';
import type { TextLine } from '../text-edit/lines.ts';
import { editLines, type LinesBefore, restoredPlaced } from '../text-edit/placed-lines.ts';
import { declaredEntry, isMounted, pathOf } from './declared.ts';
import { diffMount, diffMountRemoval } from './diff.ts';
import { declaredEntries, entriesAt, fstab } from './fstab.ts';
import { remountOptions } from './options.ts';
import { look, type MountBefore, type SeenMount } from './seen.ts';

const mounts: Database<ReadonlyMap<string, Mount>> = { name: 'mounts', read: readMounts };
const missingDirectory = 'there is no directory /etc';

/** A mounted file system, and its line in /etc/fstab. Both are observed, changed, and restored. */
export const mountUnix = defineProvider<'mount-unix', SeenMount, MountBefore>({
  type: 'mount-unix',
  fields: {
    path: 'text',
    device: 'text?',
    type: 'text?',
    options: 'text?',
    dump: 'integer?',
    pass: 'integer?',
    mounted: 'boolean?',
    ensure: 'text?',
  },
  // Several mounts share the file, so no resource owns the path.
  watched: () => [fstab],

  check({ body: { device, type, options } }) {
    if (/\s/.test(options ?? '') || /[\n\r\0]/.test(`${device}${type}`))
      throw new HostFailure('the device, the type, and the options must be words of one line');
  },

  observe: async (resource, _circumstances, machine) => look(resource, await machine.database(mounts), machine),
  diff: diffMount,

  async remember(resource, seen, { changes }, before) {
    const changing = changedFields({ changes });
    const isLive = ['mounted', 'live_device', 'live_options'].some((field) => changing.has(field));
    const isUnmounted = changing.has('live_device') || (changing.has('mounted') && seen.live !== null);
    if (before?.live == null && isUnmounted && seen.lines.length === 0 && /\[/.test(seen.live?.source ?? ''))
      throw new HostFailure(
        `a part of another file system is mounted at ${pathOf(resource)}, and ${fstab} has no line for it, so the agent could not restore it later; unmount it first`,
      );
    const options = changing.has('options') && seen.live !== null;
    return {
      lines: before?.lines ?? linesBefore(seen),
      live:
        before?.live ??
        (isLive || options ? (seen.live === null ? { was: 'unmounted' } : { was: 'mounted', ...seen.live }) : null),
    };
  },

  async apply(resource, seen, { changes }, machine) {
    const path = pathOf(resource);
    const changing = changedFields({ changes });
    await edit(machine, (lines) => declaredEntries(entriesAt(path, lines), declaredEntry(resource, lines), lines));
    machine.stale(mounts);
    const { live } = seen;
    if (live !== null && (changing.has('mounted') || changing.has('live_device'))) await unmount(path, machine);
    if (!isMounted(resource)) return {};
    const isSecret = machine.mayContainSecret(path);
    if (live === null || changing.has('live_device')) await mount(path, isSecret, machine);
    else if (changing.has('options') || changing.has('live_options'))
      try {
        await remount(path, remountOptions(seen.options ?? 'defaults'), isSecret, machine);
      } catch (error) {
        // Restores the line. Otherwise, the next apply would find the declared line and would not retry the mount.
        await edit(machine, (lines) => restoredPlaced(entriesAt(path, lines), linesBefore(seen), lines));
        throw error;
      }
    return {};
  },

  /** The options of a mounted file system do not show whether the agent remounted it before it was killed. */
  wasApplied: (resource, _brief, _seenNow, { changes }) =>
    !isMounted(resource) ||
    !changes.some(({ field }) => field === 'options') ||
    changes.some(({ field }) => field === 'mounted' || field === 'live_device'),

  observeForRemoval: async (resource, _before, machine) => look(resource, await machine.database(mounts), machine),
  diffRemoval: diffMountRemoval,

  async remove(resource, before, seen, { changes }, machine) {
    const path = pathOf(resource);
    const changing = changedFields({ changes });
    machine.stale(mounts);
    if (seen.live !== null && (changing.has('mounted') || changing.has('live_device'))) await unmount(path, machine);
    const { lines: record, live: earlier } = before;
    const removesEmpty = record.was === 'absent' && record.made;
    await edit(machine, (lines) => restoredPlaced(entriesAt(path, lines), record, lines), removesEmpty);
    if (earlier?.was !== 'mounted') return {};
    const isMissing = seen.live === null || changing.has('live_device');
    if (isMissing && record.was === 'present') await mount(path, machine.mayContainSecret(path), machine);
    else if (isMissing) await mountAgain(path, earlier, machine);
    else if (changing.has('live_options')) await remount(path, earlier.options, false, machine);
    return {};
  },
});

const linesBefore = ({ lines, type }: SeenMount): LinesBefore =>
  lines.length === 0 ? { was: 'absent', made: type === 'absent' } : { was: 'present', lines };

async function edit(
  machine: Machine,
  change: (lines: readonly TextLine[]) => TextLine[],
  removesEmpty = false,
): Promise<void> {
  await editLines(fstab, machine, change, { removesEmpty, missingDirectory });
  await fstabChanged(machine);
}
