import { keyPath, renderSource, sourceChanges, sourceFault, sourcePath } from './apt-repository/source.ts';
import { freshOffers, knownOffers } from './package-apt/seen.ts';
import { type RepositoryBefore, type SeenRepository, sourceProvider } from './package-source/source-and-key.ts';
import { defineProvider } from './provider/define-provider.ts';

/** A package source of apt. */
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
  brings: () => ['packages'],
  // Only the directory of the key file may be missing.
  path: (resource) => (resource.body.signed_by == null ? sourcePath(resource.body.name) : keyPath(resource.body.name)),
  watched: ({ body: { name } }) => [sourcePath(name), keyPath(name)],

  check(resource) {
    const body = resource.body;
    const fault = isAbsent(body) ? null : sourceFault(body);
    if (fault !== null) throw new HostFailure(fault);
  },

  observe(resource, { succeeded }, machine) {
    return {
      source: lookAtWritten(resource, sourceFile(resource), machine),
      key: hasKey(resource, succeeded) ? lookAtWritten(resource, keyFile(resource), machine) : null,
    };
  },

  diff(resource, seen, circumstances) {
    const parts = diffParts(resource, seen, circumstances);
    return sourceDifference(parts, textOf(seen.source), sourceFile(resource).text);
  },

  inBrief: (seen): Json =>
    JSON.parse(
      JSON.stringify({ source: fileInBrief(seen.source), key: seen.key === null ? null : fileInBrief(seen.key) }),
    ),
  weight: (seen) => fileWeight(seen.source) + (seen.key === null ? 0 : fileWeight(seen.key)),

  async remember(resource, seen, _difference, before, machine) {
    const { source, key } = diffParts(resource, seen, { purpose: 'apply' });
    const of = async (
      file: WrittenFile,
      found: SeenFile | null,
      difference: Difference,
      known: FileBefore | null,
    ): Promise<FileBefore | null> =>
      found === null || difference.action === 'none'
        ? known
        : rememberWritten(resource, file, found, difference, known, machine);
    return {
      source: await of(sourceFile(resource), seen.source, source, before?.source ?? null),
      key: await of(keyFile(resource), seen.key, key, before?.key ?? null),
    };
  },

  async apply(resource, seen, _difference, machine) {
    const { source, key } = diffParts(resource, seen, { purpose: 'apply' });
    const writeSource = async () => {
      if (source.action !== 'none') await write(resource, sourceFile(resource), seen.source, source, machine);
    };
    const writeKey = async () => {
      if (seen.key !== null && key.action !== 'none') await write(resource, keyFile(resource), seen.key, key, machine);
    };
    // Orders the steps so that a source never refers to a missing key.
    const steps = keyFile(resource).text === null ? [writeSource, writeKey] : [writeKey, writeSource];
    for (const step of steps) await step();
    machine.stale(freshOffers, knownOffers);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    return {
      source: await lookAtWrittenForRemoval(resource, sourceFile(resource), before.source, machine),
      key: before.key === null ? null : await lookAtWrittenForRemoval(resource, keyFile(resource), before.key, machine),
    };
  },

  diffRemoval(resource, before, seen, _circumstances, copies) {
    const parts = diffPartsRemoval(resource, before, seen, copies);
    const { source } = before;
    const bytes =
      source?.was === 'file' && source.content !== null ? copies.read(source.content, maxContentInMemory) : null;
    const difference = sourceDifference(parts, textOf(seen.source), bytes === null ? null : bytes.toString('utf8'));
    return difference.action === 'none' ? difference : { ...difference, action: 'remove' };
  },

  async remove(resource, before, seen, _difference, machine) {
    const { source, key } = diffPartsRemoval(resource, before, seen, machine.copies);
    if (before.source !== null && source.action !== 'none')
      await restoreWritten(resource, sourceFile(resource), before.source, seen.source, source, machine);
    if (before.key !== null && seen.key !== null && key.action !== 'none')
      await restoreWritten(resource, keyFile(resource), before.key, seen.key, key, machine);
    machine.stale(freshOffers, knownOffers);
    return {};
  },
});
