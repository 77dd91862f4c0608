import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { type KernelModules, missingModprobe, modprobe, moduleNameOf, readModules } from '../../host/kernel-modules.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf, type WrittenFile, writtenPart } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Circumstances,
  changedFields,
  type Database,
  type Difference,
  type Machine,
  restoring,
  withChanges,
} from '../provider/provider.ts';

export interface SeenKernelModule {
  loaded: 'yes' | 'no' | 'built-in';
  /** Users of the loaded module; empty if it is not in use. */
  usedBy: string;
  /** The agent's file in /etc/modules-load.d. */
  atBoot: SeenFile;
  /** The agent's file in /etc/modprobe.d. */
  settings: SeenFile;
  /** How to install modprobe if it is missing; otherwise null. */
  missing: string | null;
}

/** State before the agent first changed it. A field is null if the agent has not changed it. */
export type KernelModuleBefore = { wasLoaded: boolean | null; atBoot: FileBefore | null; settings: FileBefore | null };

type Declared = ResolvedResource<'kernel-module'>;
type Part = 'atBoot' | 'settings';
const parts = ['atBoot', 'settings'] as const;

const kernelModules: Database<KernelModules> = { name: 'kernel modules', read: readModules };

const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';
const nameOf = ({ body }: Declared): string => moduleNameOf(body.name);
const heading = '# Written by Muster, which reverts changes.\n';

function writtenFile(resource: Declared, part: Part): WrittenFile {
  const name = nameOf(resource);
  const { options, blacklist } = resource.body;
  if (part === 'atBoot')
    return {
      path: `/etc/modules-load.d/90-muster-${name}.conf`,
      text: isAbsent(resource) ? null : `${heading}${name}\n`,
      mode: '0644',
    };
  // `blacklist` alone would still allow a program to load the module by its name.
  const text = isAbsent(resource)
    ? blacklist === true && `blacklist ${name}\ninstall ${name} /bin/false\n`
    : options != null && `options ${name} ${options}\n`;
  return {
    path: `/etc/modprobe.d/90-muster-${name}.conf`,
    text: text === false ? null : `${heading}${text}`,
    mode: resource.sensitive_fields.includes('options') ? '0600' : '0644',
  };
}

const fileOf = (resource: Declared, part: Part) => writtenPart(resource, writtenFile(resource, part));

/** A kernel module: whether it is loaded now, and files for the next boot. */
export const kernelModule = defineProvider<'kernel-module', SeenKernelModule, KernelModuleBefore>({
  type: 'kernel-module',
  fields: { name: 'text', options: 'text?', blacklist: 'boolean?', ensure: 'text?' },
  // If kmod is not installed, this directory may be missing, so the agent may create and remove it. systemd provides
  // the other directory.
  path: (resource) => writtenFile(resource, 'settings').path,
  watched: (resource) => parts.map((part) => writtenFile(resource, part).path),
  // The module may provide a kernel parameter that another resource sets.
  brings: () => ['programs'],

  check(resource) {
    const { name, options, blacklist } = resource.body;
    if (!/^[A-Za-z0-9_][A-Za-z0-9_-]*$/.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not the name of a kernel module`);
    if (/[\n\r\0]|\\$/.test(options ?? ''))
      throw new HostFailure('the options must be one line that does not end with a backslash');
    if (blacklist === true && !isAbsent(resource))
      throw new HostFailure('`blacklist` needs `ensure: absent`, because a blacklisted module cannot be loaded');
    if (options != null && isAbsent(resource))
      throw new HostFailure('an absent module has no options: remove `options`, or `ensure: absent`');
  },

  observe: (resource, _circumstances, machine) =>
    seenWith(resource, machine, (part) => fileOf(resource, part).look(machine)),
  diff: diffKernelModule,
  inBrief: (seen) =>
    JSON.parse(JSON.stringify({ ...seen, atBoot: fileInBrief(seen.atBoot), settings: fileInBrief(seen.settings) })),
  weight: ({ atBoot, settings }) => fileWeight(atBoot) + fileWeight(settings),

  async remember(resource, seen, difference, before, machine) {
    const changing = changedFields(difference);
    const remembered = (part: Part) => fileOf(resource, part).remember(seen[part], before?.[part] ?? null, machine);
    return {
      wasLoaded: before?.wasLoaded ?? (changing.has('loaded') ? seen.loaded === 'yes' : null),
      atBoot: await remembered('atBoot'),
      settings: await remembered('settings'),
    };
  },

  async apply(resource, seen, difference, machine) {
    for (const part of parts) await fileOf(resource, part).write(seen[part], machine);
    if (changedFields(difference).has('loaded')) await setLoaded(nameOf(resource), !isAbsent(resource), seen, machine);
    return {};
  },

  observeForRemoval: (resource, before, machine) =>
    seenWith(resource, machine, (part) => fileOf(resource, part).lookForRemoval(before[part], machine)),

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const changes: FieldChange[] = [];
    const wasLoaded = before.wasLoaded === true ? 'yes' : 'no';
    const keepsLoaded = before.wasLoaded === false && seen.loaded === 'yes' && seen.usedBy !== '';
    if (before.wasLoaded !== null && seen.loaded !== wasLoaded && !keepsLoaded)
      changes.push({ field: 'loaded', from: seen.loaded, to: wasLoaded });
    for (const part of parts)
      if (fileOf(resource, part).diffRemoval(before[part], seen[part], copies).action !== 'none')
        changes.push({ field: restoredFields[part], from: 'changed', to: null });
    const stays = `the module stays loaded until the next boot, because ${seen.usedBy} use it`;
    return restoring(changes, keepsLoaded ? stays : null);
  },

  async remove(resource, before, seen, difference, machine) {
    for (const part of parts) await fileOf(resource, part).restore(before[part], seen[part], machine);
    if (changedFields(difference).has('loaded'))
      await setLoaded(nameOf(resource), before.wasLoaded === true, seen, machine);
    return {};
  },
});

const restoredFields: Readonly<Record<Part, string>> = { atBoot: 'persisted', settings: 'settings' };

async function seenWith(
  resource: Declared,
  machine: Machine,
  look: (part: Part) => SeenFile | Promise<SeenFile>,
): Promise<SeenKernelModule> {
  const { loaded, builtIn } = await machine.database(kernelModules);
  const name = nameOf(resource);
  return {
    loaded: loaded.has(name) ? 'yes' : builtIn.has(name) ? 'built-in' : 'no',
    usedBy: loaded.get(name) ?? '',
    atBoot: await look('atBoot'),
    settings: await look('settings'),
    missing: missingModprobe(),
  };
}

async function setLoaded(
  name: string,
  isLoaded: boolean,
  { usedBy }: SeenKernelModule,
  machine: Machine,
): Promise<void> {
  machine.stale(kernelModules);
  if (!isLoaded && usedBy !== '')
    throw new HostFailure(`the kernel module ${name} cannot be unloaded while ${usedBy} use it; end that use first`);
  await modprobe(isLoaded ? 'load' : 'unload', name, machine);
  if (isLoaded && !(await readModules(machine)).loaded.has(name))
    throw new HostFailure(
      `modprobe succeeded, but no module ${name} is loaded; if the name is an alias, declare the name in the first column of lsmod`,
    );
}

/** Returns the settings in the agent's file in /etc/modprobe.d. */
function settingsIn(file: SeenFile): { options: string | null; blacklist: string | null } {
  const text = textOf(file) ?? '';
  return {
    options: /^options \S+ (.*)$/m.exec(text)?.[1] ?? null,
    blacklist: /^install \S+ \/bin\/false$/m.test(text) ? 'yes' : null,
  };
}

export function diffKernelModule(
  resource: Declared,
  seen: SeenKernelModule,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference {
  const absent = isAbsent(resource);
  const { options, blacklist } = resource.body;
  const changes: FieldChange[] = [];
  if ((seen.loaded === 'no') !== absent && !(absent && seen.loaded === 'built-in'))
    changes.push({ field: 'loaded', from: seen.loaded, to: absent ? 'no' : 'yes' });
  const atBoot = fileOf(resource, 'atBoot').diff(seen.atBoot, circumstances);
  if (atBoot.action !== 'none')
    changes.push({
      field: 'persisted',
      from: textOf(seen.atBoot) === null ? null : 'changed',
      to: absent ? null : 'yes',
    });
  const settings = fileOf(resource, 'settings').diff(seen.settings, circumstances);
  if (settings.action !== 'none') {
    const there = settingsIn(seen.settings);
    const declared = { options: options ?? null, blacklist: absent && blacklist === true ? 'yes' : null };
    const differing = (['options', 'blacklist'] as const).filter((field) => there[field] !== declared[field]);
    changes.push(
      ...(differing.length === 0
        ? settings.changes
        : differing.map((field) => ({ field, from: there[field], to: declared[field] }))),
    );
  }
  const isChanging = changedFields({ changes });
  const message =
    absent && seen.loaded === 'built-in'
      ? 'the module is part of the kernel, so it cannot be unloaded'
      : isChanging.has('options') && seen.loaded === 'yes'
        ? 'the loaded module keeps its options until it is loaded again'
        : undefined;
  const missing =
    isChanging.has('loaded') && seen.missing !== null ? { kind: 'programs' as const, message: seen.missing } : null;
  const action = absent ? 'remove' : atBoot.action === 'create' ? 'create' : 'update';
  return withChanges(action, changes, { awaits: [missing], message });
}
