import type { ResolvedResource } from '@muster/protocol/module';
import { providerOf, watchedPaths } from '../../resources/registry.ts';
import { providerFor } from './find-provider.ts';
import type { Step } from './steps.ts';

/** Returns every directory above a path except the root, innermost first. */
export function ancestors(path: string): string[] {
  const all: string[] = [];
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) all.push(path.slice(0, cut));
  return all;
}

/** Returns the paths below which nothing can exist, each with the reason. */
export function blockedPaths(steps: readonly Step[]): Map<string, string> {
  const blocked = new Map<string, string>();
  for (const step of steps) {
    const { kind, resource } = step;
    // A resource with a condition may be skipped, so it blocks no path.
    if (kind === 'remove' || resource.only_if !== undefined) continue;
    const path = providerFor(step)?.path(resource) ?? null;
    if (path === null) continue;
    const { body } = resource;
    if ('ensure' in body && body.ensure === 'absent')
      blocked.set(path, `${path} is declared absent, so no path below it can exist`);
    else if (
      resource.type === 'download' ||
      (resource.type === 'file-unix' && !('symlink' in body && body.symlink != null))
    )
      blocked.set(path, `${path} is declared as a file, so no path below it can exist`);
  }
  return blocked;
}

/** Returns every declared path, and every directory above it. */
export function declaredPaths(desired: Iterable<ResolvedResource>): Set<string> {
  const declared = new Set<string>();
  for (const resource of desired) {
    const path = providerFor({ kind: 'apply', resource })?.path(resource) ?? null;
    if (path === null || ('ensure' in resource.body && resource.body.ensure === 'absent')) continue;
    declared.add(path);
    for (const ancestor of ancestors(path)) declared.add(ancestor);
  }
  return declared;
}

/** Returns the paths of the files and links that a change to the resource replaces; empty for a directory. */
export function changedPaths({ resource }: Pick<Step, 'resource'>): string[] {
  const provider = providerOf(resource.type);
  if (provider === null || resource.type === 'directory-unix') return [];
  const path = provider.path(resource);
  const read = new Set(provider.reads?.(resource) ?? []);
  return [...(path === null ? [] : [path]), ...watchedPaths(resource).filter((each) => !read.has(each))];
}

/** Returns the paths of all files that belong to resources, and every directory above them. */
export function managedPaths(resources: Iterable<ResolvedResource>): Set<string> {
  const paths = new Set<string>();
  for (const resource of resources) {
    const path = providerOf(resource.type)?.path(resource) ?? null;
    for (const each of [...(path === null ? [] : [path]), ...watchedPaths(resource)]) {
      paths.add(each);
      for (const ancestor of ancestors(each)) paths.add(ancestor);
    }
  }
  return paths;
}

/** Returns the resources that have their file at exactly this path. */
export const ownersOf = (path: string, resources: readonly ResolvedResource[]): ResolvedResource[] =>
  resources.filter((resource) => {
    const own = providerOf(resource.type)?.path(resource) ?? null;
    return own === path || watchedPaths(resource).includes(path);
  });

/** Returns the paths of all declared objects, except those declared absent. Omits the directories above them. */
export const keptPaths = (resources: readonly ResolvedResource[]): Set<string> =>
  new Set(
    resources
      .filter(({ body }) => !('ensure' in body && body.ensure === 'absent'))
      .flatMap((resource) => {
        const path = providerOf(resource.type)?.path(resource) ?? null;
        return [...(path === null ? [] : [path]), ...watchedPaths(resource).map((each) => each.replace(/\/$/, ''))];
      }),
  );
