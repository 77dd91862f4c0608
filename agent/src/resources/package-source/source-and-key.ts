import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
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
} from '../file-unix/written-file.ts';
import {
  type Circumstances,
  type ContentCopies,
  type Database,
  type Difference,
  type Json,
  type Machine,
  nothing,
  type Provider,
} from '../provider/provider.ts';

/** A package source: a file for the package manager, and a file with the source's signing key. */

export type SourceType = 'apt-repository' | 'dnf-repository';

/** The format in which a package manager stores a source. */
export interface SourceFormat<T extends SourceType> {
  readonly type: T;
  sourcePath(name: string): string;
  keyPath(name: string): string;
  render(body: ResolvedResource<T>['body']): string;
  /** Returns the reason why the body cannot be rendered, or null if it can. */
  fault(body: ResolvedResource<T>['body']): string | null;
  /** Returns the declared key, or null if there is none. */
  key(body: ResolvedResource<T>['body']): string | null;
  /** Name of the field that contains the key. */
  readonly keyField: string;
  /** Returns the differences between two versions of the file, as fields. */
  changes(from: string | null, to: string | null): FieldChange[];
  /** Cached databases of the packages that the package manager offers. A change makes them stale. */
  readonly offers: readonly Database<unknown>[];
}

export interface SeenRepository {
  source: SeenFile;
  /** Null if no key is or was declared, so that the file is not observed. */
  key: SeenFile | null;
}

export type RepositoryBefore = { source: FileBefore | null; key: FileBefore | null };

interface Parts {
  source: Difference;
  key: Difference;
}

/** Translates the changes to both files into resource fields. */
function sourceDifference(
  { changes, keyField }: Pick<SourceFormat<SourceType>, 'changes' | 'keyField'>,
  { source, key }: Parts,
  from: string | null,
  to: string | null,
): Difference {
  if (source.action === 'none' && key.action === 'none') return nothing(source.message);
  const ensure = source.changes.filter(({ field }) => field === 'ensure');
  const metadata = source.changes.filter(({ field }) => !['ensure', 'content'].includes(field));
  const fields = source.changes.some(({ field }) => field === 'content') ? changes(from, to) : [];
  const isCreation = ensure.some((change) => change.to === 'present');
  const isRemoval = ensure.some((change) => change.to === 'absent');
  const keyMoved: FieldChange[] =
    key.action === 'none' || isRemoval || fields.some(({ field }) => field === keyField)
      ? []
      : [{ field: keyField, from: key.action === 'create' ? null : 'another key', to: 'as declared' }];
  return {
    action: source.action === 'none' ? 'update' : source.action,
    changes: [...ensure, ...(isRemoval ? [] : fields), ...keyMoved, ...(isCreation ? [] : metadata)],
    diff: source.diff,
    ...(source.message === undefined ? {} : { message: source.message }),
  };
}

/** Returns a key as it is written to the file. */
export const renderKey = (armored: string): string => `${armored.replaceAll('\r\n', '\n').trim()}\n`;

/**
 * Returns the reason why the text is not an ASCII-armored public key, or null if it is one. @param field name of the
 * field
 */
export function keyFault(field: string, text: string): string | null {
  if (/-----BEGIN PGP PRIVATE KEY BLOCK-----/.test(text))
    return `\`${field}\` is a private key; declare the public key`;
  return /-----BEGIN PGP PUBLIC KEY BLOCK-----[\s\S]+-----END PGP PUBLIC KEY BLOCK-----/.test(text)
    ? null
    : `\`${field}\` is not an ASCII-armored public key; export one with: gpg --armor --export`;
}

/** Returns functions that declare the two files of a source and compare them with the machine. */
function filesOf<T extends SourceType>(format: SourceFormat<T>) {
  type Declared = ResolvedResource<T>;
  const isAbsent = ({ ensure }: { ensure?: string }): boolean => ensure === 'absent';

  const sourceFile = (resource: Declared): WrittenFile => ({
    path: format.sourcePath(resource.body.name),
    text: isAbsent(resource.body) ? null : format.render(resource.body),
    // A URI may contain a password.
    mode: resource.sensitive_fields.length > 0 ? '0600' : '0644',
  });

  const keyFile = ({ body }: Declared): WrittenFile => {
    const key = isAbsent(body) ? null : format.key(body);
    return { path: format.keyPath(body.name), text: key === null ? null : renderKey(key), mode: '0644' };
  };

  /** Reports whether the agent manages the key file, because a key is or was declared. */
  const hasKey = ({ body }: Declared, succeeded: ResolvedResource | null): boolean =>
    (!isAbsent(body) && format.key(body) !== null) ||
    (succeeded?.type === format.type && format.key((succeeded as Declared).body) !== null);

  const diffParts = (
    resource: Declared,
    seen: SeenRepository,
    circumstances: Pick<Circumstances, 'purpose'>,
  ): Parts => ({
    source: diffWritten(resource, sourceFile(resource), seen.source, circumstances),
    key: seen.key === null ? nothing() : diffWritten(resource, keyFile(resource), seen.key, circumstances),
  });

  const diffPartsRemoval = (
    resource: Declared,
    before: RepositoryBefore,
    seen: SeenRepository,
    copies: Pick<ContentCopies, 'read'>,
  ): Parts => ({
    source:
      before.source === null
        ? nothing()
        : diffWrittenRemoval(resource, sourceFile(resource), before.source, seen.source, copies),
    key:
      before.key === null || seen.key === null
        ? nothing()
        : diffWrittenRemoval(resource, keyFile(resource), before.key, seen.key, copies),
  });

  return { isAbsent, sourceFile, keyFile, hasKey, diffParts, diffPartsRemoval };
}

/** Returns a function that records one of the files before its first change. */
const rememberPart =
  (resource: ResolvedResource, machine: Machine) =>
  async (
    file: WrittenFile,
    found: SeenFile | null,
    difference: Difference,
    known: FileBefore | null,
  ): Promise<FileBefore | null> =>
    found === null || difference.action === 'none'
      ? known
      : rememberWritten(resource, file, found, difference, known, machine);

/** Returns the members of the provider that writes sources in this format. */
export function sourceProvider<T extends SourceType>(format: SourceFormat<T>) {
  type Declared = ResolvedResource<T>;
  const { isAbsent, sourceFile, keyFile, hasKey, diffParts, diffPartsRemoval } = filesOf(format);

  return {
    brings: () => ['packages'],
    // Only the key file's directory may be missing.
    path: ({ body }) => (format.key(body) === null ? format.sourcePath(body.name) : format.keyPath(body.name)),
    watched: ({ body }) => [
      format.sourcePath(body.name),
      ...(format.key(body) === null ? [] : [format.keyPath(body.name)]),
    ],

    check(resource) {
      const body = resource.body;
      const fault = isAbsent(body) ? null : format.fault(body);
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
      return sourceDifference(format, parts, textOf(seen.source), sourceFile(resource).text);
    },

    inBrief: (seen): Json =>
      JSON.parse(
        JSON.stringify({ source: fileInBrief(seen.source), key: seen.key === null ? null : fileInBrief(seen.key) }),
      ),
    weight: (seen) => fileWeight(seen.source) + (seen.key === null ? 0 : fileWeight(seen.key)),

    async remember(resource, seen, _difference, before, machine) {
      const { source, key } = diffParts(resource, seen, { purpose: 'apply' });
      const of = rememberPart(resource, machine);
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
        if (seen.key !== null && key.action !== 'none')
          await write(resource, keyFile(resource), seen.key, key, machine);
      };
      // Orders the steps so that a source never refers to a missing key.
      const steps = keyFile(resource).text === null ? [writeSource, writeKey] : [writeKey, writeSource];
      for (const step of steps) await step();
      machine.stale(...format.offers);
      return {};
    },

    async observeForRemoval(resource, before, machine) {
      return {
        source: await lookAtWrittenForRemoval(resource, sourceFile(resource), before.source, machine),
        key:
          before.key === null ? null : await lookAtWrittenForRemoval(resource, keyFile(resource), before.key, machine),
      };
    },

    diffRemoval(resource, before, seen, _circumstances, copies) {
      const parts = diffPartsRemoval(resource, before, seen, copies);
      const { source } = before;
      const bytes =
        source?.was === 'file' && source.content !== null ? copies.read(source.content, maxContentInMemory) : null;
      const difference = sourceDifference(
        format,
        parts,
        textOf(seen.source),
        bytes === null ? null : bytes.toString('utf8'),
      );
      return difference.action === 'none' ? difference : { ...difference, action: 'remove' };
    },

    async remove(resource, before, seen, _difference, machine) {
      const { source, key } = diffPartsRemoval(resource, before, seen, machine.copies);
      if (before.source !== null && source.action !== 'none')
        await restoreWritten(resource, sourceFile(resource), before.source, seen.source, source, machine);
      if (before.key !== null && seen.key !== null && key.action !== 'none')
        await restoreWritten(resource, keyFile(resource), before.key, seen.key, key, machine);
      machine.stale(...format.offers);
      return {};
    },
  } satisfies Partial<Provider<SeenRepository, RepositoryBefore, Declared>>;
}
