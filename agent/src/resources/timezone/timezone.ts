import { posix } from 'node:path';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { fileStatus } from '../../host/read-system.ts';
import { filePart } from '../file-unix/file-part.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Difference,
  type Machine,
  nothing,
  presenceDrift,
  restoring,
  typeDrift,
  withChanges,
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

function linkOf(resource: Declared) {
  const { name, ensure } = resource.body;
  const path = '/etc/localtime';
  const body = ensure === 'absent' ? { path, ensure } : { path, symlink: `${zones}/${name}` };
  return filePart({ ...resource, type: 'file-unix', identity: path, body });
}
function fileOf(resource: Declared) {
  const { name, ensure } = resource.body;
  const path = '/etc/timezone';
  const body = ensure === 'absent' ? { path, ensure } : { path, content: `${name}\n` };
  return filePart({ ...resource, type: 'file-unix', identity: path, body });
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
    const isChanging = changingParts(difference);
    return {
      link: isChanging.link ? await linkOf(resource).remember(seen.link, record.link, machine) : record.link,
      file: isChanging.file ? await fileOf(resource).remember(seen.file, record.file, machine) : record.file,
    };
  },

  async apply(resource, seen, difference, machine) {
    const isChanging = changingParts(difference);
    if (isChanging.link) await linkOf(resource).write(seen.link, machine);
    if (isChanging.file) await fileOf(resource).write(seen.file, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const link = await linkOf(resource).lookForRemoval(before.link, machine);
    const file = await fileOf(resource).lookForRemoval(before.file, machine);
    return { link, zone: zoneOf(link), file, named: namedIn(file), known: true };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const changes: FieldChange[] = [];
    if (before.link !== null && linkOf(resource).diffRemoval(before.link, seen.link, copies).action !== 'none')
      changes.push({ field: 'name', from: seen.zone, to: zoneBefore(before.link) });
    if (fileOf(resource).diffRemoval(before.file, seen.file, copies).action !== 'none')
      changes.push({ field: 'persisted', from: seen.named, to: null });
    return restoring(changes);
  },

  async remove(resource, before, seen, difference, machine) {
    const changing = changedFields(difference);
    if (changing.has('name')) await linkOf(resource).restore(before.link, seen.link, machine);
    if (changing.has('persisted')) await fileOf(resource).restore(before.file, seen.file, machine);
    return {};
  },
});

function observe(resource: Declared, machine: Machine): SeenTimezone {
  const { name, ensure } = resource.body;
  const link = linkOf(resource).look(machine);
  const file = fileOf(resource).look(machine);
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

/** Reports which of the two files the difference concerns. */
function changingParts(difference: Difference): { link: boolean; file: boolean } {
  const changing = changedFields(difference);
  const isRemoval = changing.has('ensure');
  return { link: isRemoval || changing.has('name'), file: isRemoval || changing.has('persisted') };
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
  const message = `there is no time zone ${name} in ${zones}; check the name, or install the package tzdata`;
  return withChanges('update', changes, { awaits: [seen.known ? null : { kind: 'programs', message }] });
}
