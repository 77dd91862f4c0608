import type { ResolvedResource } from '@muster/protocol/module';
import type { ManagedRecord } from '../../journal/state.ts';
import { providerOf } from '../../resources/registry.ts';
import { ancestors } from './step-paths.ts';
import type { Step } from './steps.ts';

/**
 * Returns all steps of an operation: the desired resources in order, followed by removals of managed resources that are
 * no longer desired.
 * @param managed resources from earlier applies
 * @param keepModules modules whose resources are kept even if they are not desired
 */
export function stepsOf(
  desired: readonly ResolvedResource[],
  managed: ReadonlyMap<string, ManagedRecord>,
  keepModules: readonly string[],
): Step[] {
  const steps: Step[] = desired.map((resource, position) => ({
    position,
    kind: 'apply',
    resource,
    record: managed.get(resource.key) ?? null,
  }));
  for (const record of removals(desired, managed, keepModules))
    steps.push({ position: steps.length, kind: 'remove', resource: record.resource, record });
  return steps;
}

/** Returns the resources to remove: in the reverse order of their application, but contents before their directory. */
function removals(
  desired: readonly ResolvedResource[],
  managed: ReadonlyMap<string, ManagedRecord>,
  keepModules: readonly string[],
): ManagedRecord[] {
  const desiredKeys = new Set(desired.map(({ key }) => key));
  const keptModules = new Set(keepModules);
  const obsolete = [...managed.values()]
    .filter(({ resource }) => !desiredKeys.has(resource.key) && !keptModules.has(resource.module))
    .sort((a, b) => b.ordinal - a.ordinal);
  // A directory is removed right after the last managed path below it.
  const waiting = new Map<string, ManagedRecord>();
  const open = new Map<string, number>();
  const paths = obsolete.map(({ resource }) => providerOf(resource.type)?.path(resource) ?? null);
  const removalPaths = new Set(paths.filter((path) => path !== null));
  const above = (path: string): string[] => ancestors(path).filter((ancestor) => removalPaths.has(ancestor));
  for (const path of paths)
    if (path !== null) for (const ancestor of above(path)) open.set(ancestor, (open.get(ancestor) ?? 0) + 1);
  const ordered: ManagedRecord[] = [];
  const take = (record: ManagedRecord, path: string | null): void => {
    ordered.push(record);
    if (path === null) return;
    // Proceeds from the inside out, because the outer directory also waits for the inner one.
    for (const ancestor of above(path)) {
      const left = (open.get(ancestor) ?? 0) - 1;
      open.set(ancestor, left);
      const waits = waiting.get(ancestor);
      if (left === 0 && waits !== undefined) {
        waiting.delete(ancestor);
        take(waits, ancestor);
      }
    }
  };
  obsolete.forEach((record, i) => {
    const path = paths[i] ?? null;
    if (path !== null && (open.get(path) ?? 0) > 0) waiting.set(path, record);
    else take(record, path);
  });
  return ordered;
}
