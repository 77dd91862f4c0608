import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { removeFile } from '../../host/files/remove.ts';
import { readRootFile, writeRootFile } from '../../host/files/root-file.ts';
import { dnf, dnfWould } from '../../host/packages/dnf.ts';
import { dnfComplaint } from '../../host/packages/dnf-output.ts';
import { type ModuleState, moduleFile, parseModuleState } from '../../host/packages/module-state.ts';
import { fileStatus } from '../../host/read-system.ts';
import { dnfTool } from '../package-dnf/package-dnf.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Circumstances, type Difference, type Machine, nothing, withChanges } from '../provider/provider.ts';

export interface SeenDnfModule {
  /** Content of the file in which dnf records the state, with one character for each byte; null if there is none. */
  text: string | null;
  /** The reason why dnf would refuse the change, such as an unknown stream. */
  refusal?: string;
}

/** The file before the agent's first change. */
export type DnfModuleBefore = { text: string | null };

type Declared = ResolvedResource<'dnf-module'>;

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;

/** Maximum size of a module's state file, in bytes. */
const maxFile = 64 * 1024;

/**
 * The enabled stream of a module, or a disabled module. dnf itself changes the state, because streams may need streams
 * of other modules. Removal restores the file, because `dnf module reset` leaves a different file behind.
 */
export const dnfModule = defineProvider<'dnf-module', SeenDnfModule, DnfModuleBefore>({
  type: 'dnf-module',
  fields: { name: 'text', stream: 'text?', state: 'text?', ensure: 'text?' },
  path: ({ body: { name } }) => (namePattern.test(name) ? moduleFile(name) : null),
  brings: () => ['packages'],

  check({ body: { name, stream, state, ensure } }) {
    for (const text of [name, ...(stream == null ? [] : [stream])])
      if (!namePattern.test(text)) throw new HostFailure(`${JSON.stringify(text)} is not a name of a module or stream`);
    if (ensure !== 'absent' && state !== 'disabled' && stream == null)
      throw new HostFailure('`stream` is required, unless `state` is disabled');
  },

  async observe(resource, { purpose }, machine) {
    const seen = look(resource);
    const args = argsFor(resource, seen);
    if (args === null || purpose === 'drift') return seen;
    const { stdout, stderr } = await dnfWould(args, machine);
    const said = `${stdout}\n${stderr}`;
    return /^(Operation aborted\.|Nothing to do\.)$/m.test(said) ? seen : { ...seen, refusal: dnfComplaint(said) };
  },

  diff: diffModule,

  remember: async (_resource, { text }, _difference, before) => before ?? { text },

  async apply(resource, seen, _difference, machine) {
    const args = argsFor(resource, seen);
    if (args === null) return {};
    const { exitCode, output } = await dnf(args, machine);
    forgetOffers(machine);
    if (exitCode === 0) return {};
    return { failure: `dnf cannot change the module ${resource.body.name}: ${dnfComplaint(output)}` };
  },

  observeForRemoval: look,

  diffRemoval({ body: { name } }, before, { text }) {
    if (text === before.text) return nothing('already in its original state');
    const changes = changesBetween(parseModuleState(text, name), parseModuleState(before.text, name));
    return { action: 'remove', changes, diff: null, message: 'restores the original state' };
  },

  async remove({ body: { name } }, { text }, _seen, _difference, machine) {
    const path = moduleFile(name);
    if (text === null) {
      machine.walk.within(path, 'null', (parent, file) => {
        removeFile(parent, file);
        machine.changedDirectory(parent.path);
      });
    } else await writeRootFile(path, Buffer.from(text, 'latin1'), fileStatus(path)?.mode ?? 0o644);
    forgetOffers(machine);
    return {};
  },
});

const forgetOffers = (machine: Machine): void => {
  for (const database of [dnfTool.freshOffers, dnfTool.knownOffers]) machine.stale(database);
};

function look({ body: { name } }: Declared): SeenDnfModule {
  const text = readRootFile(moduleFile(name));
  if (text !== null && text.length > maxFile)
    throw new HostFailure(`${moduleFile(name)} is larger than 64 KiB, so dnf did not write it`);
  return { text };
}

const declaredState = ({ body: { stream, state, ensure } }: Declared): ModuleState =>
  ensure === 'absent' || (state !== 'disabled' && stream == null)
    ? { state: 'default', stream: null }
    : state === 'disabled' || stream == null
      ? { state: 'disabled', stream: null }
      : { state: 'enabled', stream };

/** Returns the arguments of dnf for the change; null if there is none. */
function argsFor(resource: Declared, { text }: SeenDnfModule): string[] | null {
  const { name } = resource.body;
  const wanted = declaredState(resource);
  if (changesBetween(parseModuleState(text, name), wanted).length === 0) return null;
  if (wanted.state === 'default') return ['module', 'reset', '--', name];
  if (wanted.state === 'disabled') return ['module', 'disable', '--', name];
  // Without the setting, dnf refuses another stream of an enabled module.
  return ['--setopt=module_stream_switch=True', 'module', 'enable', '--', `${name}:${wanted.stream}`];
}

function changesBetween(from: ModuleState, to: ModuleState): FieldChange[] {
  const changes: FieldChange[] = [];
  if (from.stream !== to.stream) changes.push({ field: 'stream', from: from.stream, to: to.stream });
  if (from.state !== to.state) changes.push({ field: 'state', from: from.state, to: to.state });
  return changes;
}

export function diffModule(
  resource: Declared,
  { text, refusal }: SeenDnfModule,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const { name } = resource.body;
  const wanted = declaredState(resource);
  const changes = changesBetween(parseModuleState(text, name), wanted);
  const message = `dnf cannot change the module ${name}: ${refusal}`;
  const awaits = [refusal === undefined || purpose === 'drift' ? null : { kind: 'packages' as const, message }];
  return withChanges(wanted.state === 'default' ? 'remove' : 'update', changes, { awaits });
}
