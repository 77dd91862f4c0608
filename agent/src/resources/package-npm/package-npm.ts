import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine } from '../provider/provider.ts';
import { checkVersion, diffNpmPackage, diffNpmPackageRemoval, isVersionMet, type NpmPackageBefore } from './diff.ts';
import { runNpm } from './run-npm.ts';
import { type Declared, look, manifestOf, prefixOf, type SeenNpmPackage, workPaths } from './seen.ts';

/** A package that npm installs globally, under a prefix. */
export const packageNpm = defineProvider<'package-npm', SeenNpmPackage, NpmPackageBefore>({
  type: 'package-npm',
  fields: { name: 'text', version: 'text?', prefix: 'text?', user: 'text?', registry: 'text?', ensure: 'text?' },
  watched: (resource) => [manifestOf(resource), ...workPaths(resource)],
  brings: () => ['programs'],

  check(resource) {
    const { name, version, registry } = resource.body;
    checkPath(prefixOf(resource));
    // npm would read other names as options, directories, archives, or repositories.
    if (!/^(@[A-Za-z0-9][\w.~-]*\/)?[A-Za-z0-9][\w.~-]*$/.test(name) || /\.(tgz|tar|tar\.gz)$/i.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not the name of a package in an npm registry`);
    checkVersion(version);
    if (registry != null && !/^https?:\/\/[^\s@]+$/.test(registry))
      throw new HostFailure('`registry` must be an http or https URL without a user or password');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffNpmPackage,
  remember: async (_resource, { version, absentDirectories }, _difference, before) =>
    before ?? { version, absentDirectories },

  async apply(resource, seen, _difference, machine) {
    const { version: declared, ensure } = resource.body;
    if (ensure === 'absent') await runNpm(resource, { action: 'uninstall' }, machine);
    else await install(resource, seen, declared ?? null, machine);
    return {};
  },

  observeForRemoval: (resource, _before, machine) => look(resource, machine),
  diffRemoval: diffNpmPackageRemoval,

  async remove(resource, before, seen, _difference, machine) {
    if (before.version !== null) {
      await install(resource, seen, before.version, machine);
      return {};
    }
    const directories = before.absentDirectories.filter((path) => !machine.declared(path)).reverse();
    const isThere = seen.version !== null || seen.isInterrupted;
    await runNpm(resource, { action: isThere ? 'uninstall' : 'clean up', directories }, machine);
    return {};
  },
});

/** Installs the desired version, or repairs the installed version if it already meets the desired one. */
async function install(
  resource: Declared,
  seen: SeenNpmPackage,
  wanted: string | null,
  machine: Machine,
): Promise<void> {
  const isRepair = seen.version !== null && isVersionMet(seen.version, wanted);
  const version = isRepair ? seen.version : wanted;
  await runNpm(resource, { action: 'install', version, afresh: isRepair }, machine);
  const now = await look(resource, machine);
  if (now.version === null || !isVersionMet(now.version, wanted))
    throw new HostFailure(
      `npm succeeded, but ${now.version === null ? 'did not install the package' : `installed the version ${now.version}`}`,
    );
}
