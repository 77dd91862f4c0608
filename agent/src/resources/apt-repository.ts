import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../host/failure.ts';
import { maxContentInMemory } from '../host/files/inspect.ts';
import { keyPath, renderKey, renderSource, sourceChanges, sourceFault, sourcePath } from './apt-repository/source.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from './file-unix/seen.ts';
import {
  diffWritten,
  diffWrittenRemoval,
  lookAtWritten,
  lookAtWrittenForRemoval,
  rememberWritten,
  restoreWritten,
  textOf,
  type WrittenFile,
  write,
} from './file-unix/written-file.ts';
import { freshOffers, knownOffers } from './package-apt/seen.ts';
import { defineProvider } from './provider/define-provider.ts';
import { type Circumstances, type ContentCopies, type Difference, type Json, nothing } from './provider/provider.ts';

/** A package source: one file for apt, and one with its signing key. */

type Body = ResourceBodies['apt-repository'];
type Declared = ResolvedResource<'apt-repository'>;

export interface SeenRepository {
  source: SeenFile;
  /** Null if no key is or was declared, so that the file is not observed. */
  key: SeenFile | null;
}

export type RepositoryBefore = { source: FileBefore | null; key: FileBefore | null };

const isAbsent = (body: Body): boolean => body.ensure === 'absent';

function sourceFile(resource: Declared): WrittenFile {
  const body = resource.body;
  return {
    path: sourcePath(body.name),
    text: isAbsent(body) ? null : renderSource(body),
    // A URI may contain a password.
    mode: resource.sensitive_fields.length > 0 ? '0600' : '0644',
  };
}

function keyFile(resource: Declared): WrittenFile {
  const body = resource.body;
  const declared = isAbsent(body) || body.signed_by == null ? null : renderKey(body.signed_by);
  return { path: keyPath(body.name), text: declared, mode: '0644' };
}

/** Reports whether the agent manages the key file, because a key is or was declared. */
function hasKey(resource: Declared, succeeded: ResolvedResource | null): boolean {
  if (!isAbsent(resource.body) && resource.body.signed_by != null) return true;
  return succeeded?.type === 'apt-repository' && (succeeded as Declared).body.signed_by != null;
}

interface Parts {
  source: Difference;
  key: Difference;
}

function diffParts(resource: Declared, seen: SeenRepository, circumstances: Pick<Circumstances, 'purpose'>): Parts {
  return {
    source: diffWritten(resource, sourceFile(resource), seen.source, circumstances),
    key: seen.key === null ? nothing() : diffWritten(resource, keyFile(resource), seen.key, circumstances),
  };
}

/** Translates the changes to both files into resource fields. */
function sourceDifference({ source, key }: Parts, from: string | null, to: string | null): Difference {
  if (source.action === 'none' && key.action === 'none') return nothing(source.message);
  const ensure = source.changes.filter(({ field }) => field === 'ensure');
  const metadata = source.changes.filter(({ field }) => !['ensure', 'content'].includes(field));
  const fields = source.changes.some(({ field }) => field === 'content') ? sourceChanges(from, to) : [];
  const isCreation = ensure.some((change) => change.to === 'present');
  const isRemoval = ensure.some((change) => change.to === 'absent');
  const keyMoved: FieldChange[] =
    key.action === 'none' || isRemoval || fields.some(({ field }) => field === 'signed_by')
      ? []
      : [{ field: 'signed_by', from: key.action === 'create' ? null : 'another key', to: 'as declared' }];
  return {
    action: source.action === 'none' ? 'update' : source.action,
    changes: [...ensure, ...(isRemoval ? [] : fields), ...keyMoved, ...(isCreation ? [] : metadata)],
    diff: source.diff,
    ...(source.message === undefined ? {} : { message: source.message }),
  };
}

export const aptRepository = defineProvider<'apt-repository', SeenRepository, RepositoryBefore>({
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

function diffPartsRemoval(
  resource: Declared,
  before: RepositoryBefore,
  seen: SeenRepository,
  copies: Pick<ContentCopies, 'read'>,
): Parts {
  return {
    source:
      before.source === null
        ? nothing()
        : diffWrittenRemoval(resource, sourceFile(resource), before.source, seen.source, copies),
    key:
      before.key === null || seen.key === null
        ? nothing()
        : diffWrittenRemoval(resource, keyFile(resource), before.key, seen.key, copies),
  };
}
