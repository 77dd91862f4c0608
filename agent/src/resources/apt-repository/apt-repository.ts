import { freshOffers, knownOffers } from '../package-apt/seen.ts';
import { type RepositoryBefore, type SeenRepository, sourceProvider } from '../package-source/source-and-key.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { keyPath, renderSource, sourceChanges, sourceFault, sourcePath } from './source.ts';

/** A package source for apt. */
export const aptRepository = defineProvider<'apt-repository', SeenRepository, RepositoryBefore>({
  ...sourceProvider({
    type: 'apt-repository',
    ...{ sourcePath, keyPath, render: renderSource, fault: sourceFault, changes: sourceChanges },
    key: ({ signed_by }) => signed_by ?? null,
    keyField: 'signed_by',
    offers: [freshOffers, knownOffers],
  }),
  type: 'apt-repository',
  fields: {
    name: 'text',
    uris: 'list',
    suites: 'list',
    components: 'list?',
    signed_by: 'text?',
    ensure: 'text?',
  },
});
