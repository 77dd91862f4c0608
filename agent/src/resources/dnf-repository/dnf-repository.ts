import { dnfTool } from '../package-dnf/package-dnf.ts';
import { type RepositoryBefore, type SeenRepository, sourceProvider } from '../package-source/source-and-key.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { keyPath, renderSource, sourceChanges, sourceFault, sourcePath } from './source.ts';

/** A package source for dnf. */
export const dnfRepository = defineProvider<'dnf-repository', SeenRepository, RepositoryBefore>({
  ...sourceProvider({
    type: 'dnf-repository',
    ...{ sourcePath, keyPath, render: renderSource, fault: sourceFault, changes: sourceChanges },
    key: ({ gpgkey }) => gpgkey ?? null,
    keyField: 'gpgkey',
    offers: [dnfTool.freshOffers, dnfTool.knownOffers],
  }),
  type: 'dnf-repository',
  fields: {
    name: 'text',
    title: 'text?',
    baseurl: 'list?',
    metalink: 'text?',
    mirrorlist: 'text?',
    gpgkey: 'text?',
    gpgcheck: 'boolean?',
    repo_gpgcheck: 'boolean?',
    enabled: 'boolean?',
    priority: 'integer?',
    excludepkgs: 'list?',
    module_hotfixes: 'boolean?',
    ensure: 'text?',
  },
});
