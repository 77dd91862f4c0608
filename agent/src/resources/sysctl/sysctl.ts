import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  missingParameter,
  normalizedValue,
  parameterName,
  parameterPath,
  readParameter,
  writeParameter,
} from '../../host/kernel-parameter.ts';
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
import { laterFile, sysctlFiles, valueIn } from './files.ts';

export interface SeenParameter {
  /** The running value with normalized white space, or null if the kernel has no such parameter. */
  value: string | null;
  /** The agent's file. */
  file: SeenFile;
  /** The value in the agent's file; null if others changed the file. */
  persisted: string | null;
  /** Path of a file that is read after the agent's file and sets another value. */
  overriddenBy: string | null;
}

/** State before the agent first changed it. A field is null if the agent has not changed it. */
export type ParameterBefore = { value: string | null; file: FileBefore | null };

type Declared = ResolvedResource<'sysctl'>;
const pathOf = (resource: Declared): string => parameterPath(resource.body.key);

/** Returns a name that sorts before 99-sysctl.conf, which usually links to the administrator's /etc/sysctl.conf. */
const fileNameOf = (resource: Declared): string =>
  `90-muster-${parameterName(pathOf(resource)).replaceAll('/', '%2F')}.conf`;

const filePathOf = (resource: Declared): string => `/etc/sysctl.d/${fileNameOf(resource)}`;

function fileOf(resource: Declared) {
  const { value, ensure } = resource.body;
  const secret = resource.sensitive_fields.includes('value');
  return writtenPart(resource, {
    path: filePathOf(resource),
    text:
      ensure === 'absent'
        ? null
        : `# Written by Muster. What is changed here by hand is changed back.\n${parameterName(pathOf(resource))} = ${normalizedValue(value)}\n`,
    mode: secret ? '0600' : '0644',
  });
}

/** A kernel parameter: the running value, and a file for this parameter in /etc/sysctl.d for the next boot. */
export const sysctl = defineProvider<'sysctl', SeenParameter, ParameterBefore>({
  type: 'sysctl',
  fields: { key: 'text', value: 'text', ensure: 'text?' },
  path(resource) {
    try {
      return filePathOf(resource);
    } catch (error) {
      // An invalid name has no file; `check` refuses it.
      if (error instanceof HostFailure) return null;
      throw error;
    }
  },

  check(resource) {
    const { value } = resource.body;
    pathOf(resource);
    if (Buffer.byteLength(fileNameOf(resource)) > 200)
      throw new HostFailure('the name of the parameter is too long for the name of its file');
    if (/[\n\r\0]/.test(value)) throw new HostFailure('the value must be one line');
  },

  async observe(resource, _circumstances, machine) {
    const path = pathOf(resource);
    const file = fileOf(resource).look(machine);
    const { value, ensure } = resource.body;
    // A parameter that is only removed from the file need not exist or be readable.
    const running = ensure === 'absent' ? null : readParameter(path);
    const files = await machine.database(sysctlFiles);
    const text = textOf(file);
    return {
      value: running,
      file,
      persisted: text === null ? null : valueIn(text, path),
      overriddenBy: ensure === 'absent' ? null : laterFile(files, path, fileNameOf(resource), normalizedValue(value)),
    };
  },

  diff: diffParameter,
  inBrief: (seen) => JSON.parse(JSON.stringify({ ...seen, file: fileInBrief(seen.file) })),
  weight: ({ file }) => fileWeight(file),

  async remember(resource, seen, difference, before, machine) {
    const record = before ?? { value: null, file: null };
    const changing = changedFields(difference);
    const fileChanges = changing.has('persisted') || changing.has('ensure');
    return {
      value: record.value ?? (changing.has('value') ? seen.value : null),
      file: fileChanges ? await fileOf(resource).remember(seen.file, record.file, machine) : record.file,
    };
  },

  async apply(resource, seen, difference, machine) {
    const changing = changedFields(difference);
    if (changing.has('value')) writeParameter(pathOf(resource), normalizedValue(resource.body.value));
    if (changing.has('persisted') || changing.has('ensure')) await fileOf(resource).write(seen.file, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    const file = await fileOf(resource).lookForRemoval(before.file, machine);
    const text = textOf(file);
    return {
      value: before.value === null ? null : readParameter(pathOf(resource)),
      file,
      persisted: text === null ? null : valueIn(text, pathOf(resource)),
      overriddenBy: null,
    };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const changes: FieldChange[] = [];
    const secret = resource.sensitive_fields.includes('value');
    if (before.value !== null && seen.value !== null && seen.value !== before.value)
      changes.push({ field: 'value', from: seen.value, to: before.value });
    if (fileOf(resource).diffRemoval(before.file, seen.file, copies).action !== 'none')
      changes.push({ field: 'persisted', from: shown(seen.persisted, secret), to: null });
    const lost = before.value !== null && seen.value === null ? 'the kernel no longer has this parameter' : undefined;
    return restoring(changes, lost);
  },

  async remove(resource, before, seen, difference, machine) {
    const changing = changedFields(difference);
    if (changing.has('persisted')) await fileOf(resource).restore(before.file, seen.file, machine);
    if (before.value !== null && changing.has('value')) writeParameter(pathOf(resource), before.value);
    return {};
  },
});

const shown = (value: string | null, secret: boolean): string | null =>
  value === null ? null : secret ? '(sensitive)' : value;

export function diffParameter(
  resource: Declared,
  seen: SeenParameter,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference {
  const body = resource.body;
  const file = fileOf(resource).diff(seen.file, circumstances);
  if (body.ensure === 'absent') {
    if (file.action === 'none') return nothing();
    return { ...presenceDrift(), message: 'the running value stays until the next boot' };
  }
  const declared = normalizedValue(body.value);
  const secret = resource.sensitive_fields.includes('value');
  const changes: FieldChange[] = [];
  if (seen.value !== declared) changes.push({ field: 'value', from: seen.value, to: declared });
  if (file.action !== 'none')
    changes.push({ field: 'persisted', from: shown(seen.persisted, secret), to: shown(declared, secret) });
  const message =
    seen.overriddenBy === null
      ? undefined
      : `${seen.overriddenBy} is read later and sets another value, which will take effect at the next boot; remove the parameter from that file`;
  const missing =
    seen.value === null ? { kind: 'programs' as const, message: missingParameter(pathOf(resource)) } : null;
  return withChanges(file.action === 'create' ? 'create' : 'update', changes, { awaits: [missing], message });
}
