import { posix } from 'node:path';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { fileStatus } from '../../host/read-system.ts';
import { applyFile, rememberFile } from '../file-unix/apply.ts';
import { diffFile } from '../file-unix/diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from '../file-unix/removal.ts';
import { type FileBefore, fileInBrief, fileWeight, look, type SeenFile } from '../file-unix/seen.ts';
import { textOf } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  typeDrift,
} from '../provider/provider.ts';

export interface SeenTimezone {
  /** The link /etc/localtime, and the zone to which it leads, or null if it does not lead to a zone. */
  link: SeenFile;
  zone: string | null;
  /** The file /etc/timezone, which only some distributions have, and the zone in it. */
  file: SeenFile;
  named: string | null;
  /** Whether the declared zone exists on this machine. */
  known: boolean;
}

/** State before the agent first changed it. A field is null if the agent has not changed it. */
export type TimezoneBefore = { link: FileBefore | null; file: FileBefore | null };

type Declared = ResolvedResource<'timezone'>;

const zones = '/usr/share/zoneinfo';

/** Returns the link as a separate resource, so that it is observed, written, and restored like a declared file. */
function linkOf(resource: Declared): ResolvedResource {
  const { name, ensure } = resource.body;
  const path = '/etc/localtime';
  const body = ensure === 'absent' ? { path, ensure } : { path, symlink: `${zones}/${name}` };
  return { ...resource, type: 'file-unix', identity: path, body };
}
function fileOf(resource: Declared): ResolvedResource {
  const { name, ensure } = resource.body;
  const path = '/etc/timezone';
  const body = ensure === 'absent' ? { path, ensure } : { path, content: `${name}\n` };
  return { ...resource, type: 'file-unix', identity: path, body };
}

/** The time zone of the machine: /etc/localtime, and /etc/timezone if it exists. */
export const timezone = defineProvider<'timezone', SeenTimezone, TimezoneBefore>({
  type: 'timezone',
  fields: { name: 'text', ensure: 'text?' },
  path: () => '/etc/localtime',
  watched: () => ['/etc/localtime', '/etc/timezone'],

  check(resource) {
    const { name } = resource.body;
    if (!/^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not the name of a time zone`);
  },

  observe: (resource, _circumstances, machine) => observe(resource, machine),
  diff: diffTimezone,
  inBrief: (seen) =>
    JSON.parse(JSON.stringify({ ...seen, link: fileInBrief(seen.link), file: fileInBrief(seen.file) })),
  weight: ({ link, file }) => fileWeight(link) + fileWeight(file),

  async remember(resource, seen, difference, before, machine) {
    const record = before ?? { link: null, file: null };
    const { link, file } = parts(resource, seen, difference);
    return {
      link: link === null ? record.link : await rememberFile(linkOf(resource), seen.link, link, record.link, machine),
      file: file === null ? record.file : await rememberFile(fileOf(resource), seen.file, file, record.file, machine),
    };
  },

  async apply(resource, seen, difference, machine) {
    const { link, file } = parts(resource, seen, difference);
    if (link !== null) await applyFile(linkOf(resource), seen.link, link, machine);
    if (file !== null) await applyFile(fileOf(resource), seen.file, file, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const link =
      before.link === null
        ? await look(linkOf(resource), machine, true, [])
        : await observeFileForRemoval(linkOf(resource), before.link, machine);
    const file =
      before.file === null
        ? await look(fileOf(resource), machine, true, [])
        : await observeFileForRemoval(fileOf(resource), before.file, machine);
    return { link, zone: zoneOf(link), file, named: namedIn(file), known: true };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const changes: FieldChange[] = [];
    if (before.link !== null && diffFileRemoval(linkOf(resource), before.link, seen.link, copies).action !== 'none')
      changes.push({ field: 'name', from: seen.zone, to: zoneBefore(before.link) });
    if (before.file !== null && diffFileRemoval(fileOf(resource), before.file, seen.file, copies).action !== 'none')
      changes.push({ field: 'persisted', from: seen.named, to: null });
    if (changes.length === 0) return nothing('already in its original state');
    return { action: 'remove', changes, diff: null, message: 'restores the original state' };
  },

  async remove(resource, before, seen, difference, machine) {
    const changing = new Set(difference.changes.map(({ field }) => field));
    const back = async (field: string, owned: ResolvedResource, recorded: FileBefore | null, now: SeenFile) => {
      if (recorded === null || !changing.has(field)) return;
      const change = diffFileRemoval(owned, recorded, now, machine.copies);
      await removeOrRestoreFile(owned, recorded, now, change, machine);
    };
    await back('name', linkOf(resource), before.link, seen.link);
    await back('persisted', fileOf(resource), before.file, seen.file);
    return {};
  },
});

async function observe(resource: Declared, machine: Machine): Promise<SeenTimezone> {
  const { name, ensure } = resource.body;
  const link = await look(linkOf(resource), machine, true, []);
  const file = await look(fileOf(resource), machine, true, []);
  return {
    link,
    zone: zoneOf(link),
    file,
    named: namedIn(file),
    known: ensure === 'absent' || isZone(machine, name),
  };
}

/** Reports whether the zone exists. Directories and lists of zones do not count. */
function isZone(machine: Machine, name: string): boolean {
  const path = `${zones}/${name}`;
  if (fileStatus(path)?.isFile !== true) return false;
  const found = inspect(machine.walk, path, true);
  // A link to another zone is an alias.
  return (
    found.type === 'symlink' || (found.type === 'file' && found.content?.bytes?.toString('latin1', 0, 4) === 'TZif')
  );
}

/** Returns the zone that a link leads to, whether its target is absolute or relative. */
function zoneOf({ found }: SeenFile): string | null {
  return found.type === 'symlink' ? zoneIn(found.target) : null;
}

function zoneIn(target: string): string | null {
  const path = posix.resolve('/etc', target);
  return path.startsWith(`${zones}/`) ? path.slice(zones.length + 1) : null;
}

const zoneBefore = (before: FileBefore): string | null => (before.was === 'symlink' ? zoneIn(before.target) : null);

const namedIn = (file: SeenFile): string | null => textOf(file)?.trim() ?? null;

/** Decides how to change each of the two files. The decision for a file is null if that file does not change. */
function parts(
  resource: Declared,
  seen: SeenTimezone,
  difference: Difference,
): { link: Difference | null; file: Difference | null } {
  const changing = new Set(difference.changes.map(({ field }) => field));
  const part = (field: string, owned: ResolvedResource, now: SeenFile): Difference | null => {
    if (!changing.has(field) && !changing.has('ensure')) return null;
    const change = diffFile(owned, now, { purpose: 'apply' });
    return change.action === 'none' ? null : change;
  };
  return { link: part('name', linkOf(resource), seen.link), file: part('persisted', fileOf(resource), seen.file) };
}

export function diffTimezone(
  resource: Declared,
  seen: SeenTimezone,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name, ensure } = resource.body;
  const { link, file } = seen;
  if (ensure === 'absent') {
    if (link.found.type === 'absent' && file.found.type === 'absent') return nothing();
    return { ...presenceDrift(), message: 'the time zone of the machine becomes UTC' };
  }
  const changes: FieldChange[] = [];
  const odd = [link.found, file.found].find(({ type }) => type === 'directory' || type === 'other');
  if (odd !== undefined) {
    if (purpose === 'drift') return typeDrift(odd, 'file');
    throw new HostFailure('/etc/localtime or /etc/timezone is neither a file nor a link; it is not changed');
  }
  if (seen.zone !== name) changes.push({ field: 'name', from: seen.zone, to: name });
  if (file.found.type !== 'absent' && seen.named !== name)
    changes.push({ field: 'persisted', from: seen.named, to: name });
  if (changes.length === 0) return nothing();
  return {
    action: 'update',
    changes,
    diff: null,
    ...(seen.known
      ? {}
      : {
          awaits: [
            {
              kind: 'programs' as const,
              message: `there is no time zone ${name} in ${zones}; check the name, or install the package tzdata`,
            },
          ],
        }),
  };
}
