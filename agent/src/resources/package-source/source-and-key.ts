import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import { type FileBefore, fileInBrief, fileWeight, type SeenFile } from '../file-unix/seen.ts';
import { textOf, writtenPart } from '../file-unix/written-file.ts';
import { type Database, type Difference, type Json, nothing, type Provider } from '../provider/provider.ts';

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
 * Returns the reason why the text is not an ASCII-armored public key, or null if it is one.
 * @param field name of the field
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

  const sourceText = ({ body }: Declared): string | null => (isAbsent(body) ? null : format.render(body));

  const sourceFile = (resource: Declared) =>
    writtenPart(resource, {
      path: format.sourcePath(resource.body.name),
      text: sourceText(resource),
      // A URI may contain a password.
      mode: resource.sensitive_fields.length > 0 ? '0600' : '0644',
    });

  const declaredKey = ({ body }: Declared): string | null => (isAbsent(body) ? null : format.key(body));

  const keyFile = (resource: Declared) => {
    const key = declaredKey(resource);
    const text = key === null ? null : renderKey(key);
    return writtenPart(resource, { path: format.keyPath(resource.body.name), text, mode: '0644' });
  };

  /** Reports whether the agent manages the key file, because a key is or was declared. */
  const hasKey = (resource: Declared, succeeded: ResolvedResource | null): boolean =>
    declaredKey(resource) !== null ||
    (succeeded?.type === format.type && format.key((succeeded as Declared).body) !== null);

  return { isAbsent, sourceText, sourceFile, declaredKey, keyFile, hasKey };
}

/** Returns the members of the provider that writes sources in this format. */
export function sourceProvider<T extends SourceType>(format: SourceFormat<T>) {
  type Declared = ResolvedResource<T>;
  const { isAbsent, sourceText, sourceFile, declaredKey, keyFile, hasKey } = filesOf(format);

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
        source: sourceFile(resource).look(machine),
        key: hasKey(resource, succeeded) ? keyFile(resource).look(machine) : null,
      };
    },

    diff(resource, seen, circumstances) {
      const parts = {
        source: sourceFile(resource).diff(seen.source, circumstances),
        key: seen.key === null ? nothing() : keyFile(resource).diff(seen.key, circumstances),
      };
      return sourceDifference(format, parts, textOf(seen.source), sourceText(resource));
    },

    inBrief: (seen): Json =>
      JSON.parse(
        JSON.stringify({ source: fileInBrief(seen.source), key: seen.key === null ? null : fileInBrief(seen.key) }),
      ),
    weight: (seen) => fileWeight(seen.source) + (seen.key === null ? 0 : fileWeight(seen.key)),

    async remember(resource, seen, _difference, before, machine) {
      const known = before?.key ?? null;
      return {
        source: await sourceFile(resource).remember(seen.source, before?.source ?? null, machine),
        key: seen.key === null ? known : await keyFile(resource).remember(seen.key, known, machine),
      };
    },

    async apply(resource, seen, _difference, machine) {
      const writeSource = () => sourceFile(resource).write(seen.source, machine);
      const writeKey = async () => {
        if (seen.key !== null) await keyFile(resource).write(seen.key, machine);
      };
      // Orders the steps so that a source never refers to a missing key.
      const steps = declaredKey(resource) === null ? [writeSource, writeKey] : [writeKey, writeSource];
      for (const step of steps) await step();
      machine.stale(...format.offers);
      return {};
    },

    async observeForRemoval(resource, before, machine) {
      return {
        source: await sourceFile(resource).lookForRemoval(before.source, machine),
        key: before.key === null ? null : await keyFile(resource).lookForRemoval(before.key, machine),
      };
    },

    diffRemoval(resource, before, seen, _circumstances, copies) {
      const parts = {
        source: sourceFile(resource).diffRemoval(before.source, seen.source, copies),
        key: seen.key === null ? nothing() : keyFile(resource).diffRemoval(before.key, seen.key, copies),
      };
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
      await sourceFile(resource).restore(before.source, seen.source, machine);
      if (seen.key !== null) await keyFile(resource).restore(before.key, seen.key, machine);
      machine.stale(...format.offers);
      return {};
    },
  } satisfies Partial<Provider<SeenRepository, RepositoryBefore, Declared>>;
}
