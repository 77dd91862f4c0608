import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { ManagedRecord } from '../../journal/state.ts';
import type { Outcome } from '../../resources/provider/provider.ts';

/** Replaces a secret value in reports. */
const redacted = '(sensitive)';

/** Names under which field changes are reported, if they differ from the field name. */
const reportedAs: Readonly<Record<string, readonly string[]>> = {
  content_base64: ['content'],
  template: ['content'],
  value: ['value', 'persisted'],
  // The options of a mounted file system may contain a password.
  device: ['device', 'live_device'],
  options: ['options', 'live_options'],
};

/**
 * Returns the fields that contain a secret now, or contained one when the resource was last declared or last succeeded.
 * The current value on the machine may still be that secret.
 */
export function sensitiveFields(resource: ResolvedResource, record: ManagedRecord | null): string[] {
  const all = [resource, record?.resource, record?.succeeded].flatMap((one) => one?.sensitive_fields ?? []);
  return [...new Set(all)];
}

/**
 * Returns the paths of files that may contain a secret, because a resource that declares the file, or a part of it, has
 * one or had one.
 */
export function pathsWithSecrets(
  resources: Iterable<ResolvedResource>,
  records: Iterable<ManagedRecord>,
): ReadonlySet<unknown> {
  const all = [...resources, ...[...records].flatMap(({ resource, succeeded }) => [resource, succeeded])];
  const bodies = all.flatMap((resource): Placed[] =>
    resource === null ? [] : [{ ...(resource.body as Placed), isSensitive: resource.sensitive_fields.length > 0 }],
  );
  const paths = new Set<unknown>(
    bodies.flatMap(({ isSensitive, path }) => (isSensitive && path != null ? [path] : [])),
  );
  // A copy of a copy may be listed before its original.
  const copies = bodies.filter(({ copy_of, path }) => copy_of != null && path != null);
  for (let known = -1; known < paths.size; ) {
    known = paths.size;
    for (const { copy_of, path } of copies) if (paths.has(copy_of)) paths.add(path);
  }
  return paths;
}

interface Placed {
  path?: unknown;
  copy_of?: unknown;
  isSensitive?: boolean;
}

/**
 * Reports whether a resource that triggers this one may contain a secret, or is a part of a file that may.
 * @param withSecrets result of `pathsWithSecrets`
 */
export function followsSecret(
  { reload_on, restart_on }: Pick<ResolvedResource, 'reload_on' | 'restart_on'>,
  resources: readonly ResolvedResource[],
  records: ReadonlyMap<string, ManagedRecord>,
  withSecrets: ReadonlySet<unknown>,
): boolean {
  const triggers = new Set([...reload_on, ...restart_on]);
  return resources
    .filter(({ key }) => triggers.has(key))
    .some((trigger) => {
      if (sensitiveFields(trigger, records.get(trigger.key) ?? null).length > 0) return true;
      const { path } = trigger.body as { path?: unknown };
      return withSecrets.has(path);
    });
}

/**
 * Hides the old and the new value of each sensitive field of a result.
 * @param sensitive result of `sensitiveFields`
 */
export function redactResult(
  result: ResourceResult,
  resource: ResolvedResource,
  sensitive: readonly string[],
): ResourceResult {
  if (sensitive.length === 0) return result;
  const hidden = new Set(sensitive.flatMap((field) => reportedAs[field] ?? [field]));
  const isScript = resource.type === 'script';
  return {
    ...result,
    sensitive: true,
    changes: result.changes.map((change) =>
      isScript || hidden.has(change.field)
        ? { ...change, from: change.from === null ? null : redacted, to: change.to === null ? null : redacted }
        : change,
    ),
    // A diff can contain the value of any field.
    diff: null,
  };
}

/** Hides all output of a script with a sensitive field, because the output may contain the secret. */
export function redactOutput(output: Outcome['output'], sensitive: readonly string[]): Outcome['output'] {
  if (output === undefined || sensitive.length === 0) return output;
  const hide = (text: string): string => (text === '' ? '' : redacted);
  return { ...output, stdout: hide(output.stdout), stderr: hide(output.stderr) };
}
