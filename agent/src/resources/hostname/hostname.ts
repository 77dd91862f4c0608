import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { runningHostname, setRunningHostname } from '../../host/host-name.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf, writtenPart } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Difference,
  nothing,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';

export interface SeenHostname {
  /** The kernel's host name. */
  running: string;
  /** The file /etc/hostname. */
  file: SeenFile;
  /** The name in the file, or null if the file has no name. */
  persisted: string | null;
}

/** State before the agent first changed it. A field is null if the agent has not changed it. */
export type HostnameBefore = { running: string | null; file: FileBefore | null };

type Declared = ResolvedResource<'hostname'>;

const fileOf = (resource: Declared) => {
  const { name, ensure } = resource.body;
  const text = ensure === 'absent' ? null : `${name}\n`;
  return writtenPart(resource, { path: '/etc/hostname', text, mode: '0644' });
};

/** Returns the first line that is neither empty nor a comment, as systemd reads the file; null if there is none. */
function nameIn(text: string | null): string | null {
  const line = text?.split('\n').find((one) => one.trim() !== '' && !one.startsWith('#'));
  return line?.trim() ?? null;
}

/** The kernel's host name and the one in /etc/hostname. The provider does not change /etc/hosts. */
export const hostname = defineProvider<'hostname', SeenHostname, HostnameBefore>({
  type: 'hostname',
  fields: { name: 'text', ensure: 'text?' },
  path: () => '/etc/hostname',

  check(resource) {
    const { name } = resource.body;
    if (name.length > 64 || !/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not a host name`);
  },

  observe(resource, _circumstances, machine) {
    const file = fileOf(resource).look(machine);
    return { running: runningHostname(), file, persisted: nameIn(textOf(file)) };
  },

  diff: diffHostname,
  inBrief: (seen) => JSON.parse(JSON.stringify({ ...seen, file: fileInBrief(seen.file) })),
  weight: ({ file }) => fileWeight(file),

  async remember(resource, seen, difference, before, machine) {
    const record = before ?? { running: null, file: null };
    const changing = changedFields(difference);
    const isFileChanging = changing.has('persisted') || changing.has('ensure');
    return {
      running: record.running ?? (changing.has('name') ? seen.running : null),
      file: isFileChanging ? await fileOf(resource).remember(seen.file, record.file, machine) : record.file,
    };
  },

  async apply(resource, seen, difference, machine) {
    const changing = changedFields(difference);
    if (changing.has('persisted') || changing.has('ensure')) await fileOf(resource).write(seen.file, machine);
    if (changing.has('name')) await setRunningHostname(resource.body.name, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const file = await fileOf(resource).lookForRemoval(before.file, machine);
    return { running: runningHostname(), file, persisted: nameIn(textOf(file)) };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const changes: FieldChange[] = [];
    if (before.running !== null && before.running !== seen.running)
      changes.push({ field: 'name', from: seen.running, to: before.running });
    if (fileOf(resource).diffRemoval(before.file, seen.file, copies).action !== 'none')
      changes.push({ field: 'persisted', from: seen.persisted, to: null });
    return restoring(changes);
  },

  async remove(resource, before, seen, difference, machine) {
    const changing = changedFields(difference);
    if (changing.has('persisted')) await fileOf(resource).restore(before.file, seen.file, machine);
    if (before.running !== null && changing.has('name')) await setRunningHostname(before.running, machine);
    return {};
  },
});

export function diffHostname(
  resource: Declared,
  seen: SeenHostname,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name, ensure } = resource.body;
  const file = fileOf(resource).diff(seen.file, { purpose });
  if (ensure === 'absent') {
    if (file.action === 'none') return nothing();
    return { ...presenceDrift(), message: 'the machine keeps its name until the next boot' };
  }
  const changes: FieldChange[] = [];
  if (seen.running !== name) changes.push({ field: 'name', from: seen.running, to: name });
  // The file counts as declared if it contains the declared name, regardless of other text in the file.
  if (seen.persisted !== name) changes.push({ field: 'persisted', from: seen.persisted, to: name });
  return withChanges('update', changes);
}
