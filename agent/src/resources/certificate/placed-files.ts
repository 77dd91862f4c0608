import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { maxContentInMemory } from '../../host/files/inspect.ts';
import { placeFile } from '../file-unix/apply.ts';
import { filePart } from '../file-unix/file-part.ts';
import { type FileBefore, fileInBrief, isWritten, type SeenFile } from '../file-unix/seen.ts';
import { textOf } from '../file-unix/written-file.ts';
import {
  type Circumstances,
  type ContentCopies,
  type Difference,
  type Json,
  type Machine,
  nothing,
  presenceDrift,
} from '../provider/provider.ts';
import { firstCertificate, lifetimeOf, namesOf, shownTime } from './chain.ts';

/** The files of a certificate: each is observed, written, and restored like a declared file. */

/** A file that a certificate resource places. */
export interface PlacedFile {
  /** Name of the file in changes. */
  name: string;
  path: string;
  /** Null if the file must not exist. */
  text: string | null;
  mode: string;
  /** Whether the current content is kept. Only the owner, the group, and the permissions are then declared. */
  keepsContent?: boolean;
}

export type SeenFiles = SeenFile[];
/** Earlier states in the order of the files; null for a file that the agent never changed. */
export type FilesBefore = (FileBefore | null)[];

interface Owned {
  owner?: string | null;
  group?: string | null;
}

function declared(of: ResolvedResource, { path, text, mode, keepsContent }: PlacedFile): ResolvedResource<'file-unix'> {
  const { owner, group } = of.body as Owned;
  const ownership = { ...(owner == null ? {} : { owner }), ...(group == null ? {} : { group }), mode };
  const body =
    text === null
      ? { path, ensure: 'absent' as const }
      : { path, ...(keepsContent ? {} : { content: text }), ...ownership };
  return { ...of, type: 'file-unix', identity: path, body };
}

const partOf = (of: ResolvedResource, file: PlacedFile) => filePart(declared(of, file));

export const lookAtFiles = (of: ResolvedResource, files: readonly PlacedFile[], machine: Machine): SeenFiles =>
  files.map((file) => partOf(of, file).look(machine));

export const filesInBrief = (seen: SeenFiles): Json => JSON.parse(JSON.stringify(seen.map(fileInBrief)));

/** @throws HostFailure if an object of another type exists at one of the paths, unless this is a drift check */
export function diffFiles(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  seen: SeenFiles,
  circumstances: Pick<Circumstances, 'purpose'>,
): Difference[] {
  if (circumstances.purpose !== 'drift') refuseLinks(files, seen);
  return files.map((file, i) => partOf(of, file).diff(seen[i] as SeenFile, circumstances));
}

/**
 * Refuses to replace symbolic links, because another program may own them and the files that they lead to. Certbot
 * stops renewing a certificate whose links were replaced.
 */
function refuseLinks(files: readonly PlacedFile[], seen: SeenFiles): void {
  const links = files.filter(({ text }, i) => text !== null && seen[i]?.found.type === 'symlink');
  if (links.length === 0) return;
  const paths = links.map(({ path }) => path).join(', ');
  const [are, them] = links.length === 1 ? ['is a symbolic link', 'it'] : ['are symbolic links', 'them'];
  throw new HostFailure(
    `${paths} ${are}, perhaps of another program such as Certbot; nothing was changed. Remove ${them} by hand, or declare another path.`,
  );
}

/** Combines the differences of the files into one for the resource. The resource is named after the first file. */
export function joinedDifference(
  files: readonly PlacedFile[],
  seen: SeenFiles,
  parts: readonly Difference[],
): Difference {
  if (parts.every(({ action }) => action === 'none')) return nothing();
  if (files.every(({ text }) => text === null)) return presenceDrift();
  const existence = parts.map(({ changes }) => changes.find(({ field }) => field === 'ensure'));
  const whole = existence.every((change) => change?.to === existence[0]?.to) ? existence[0] : undefined;
  const changes: FieldChange[] = whole === undefined ? [] : [whole];
  parts.forEach((part, i) => {
    const file = files[i] as PlacedFile;
    changes.push(...changesOf(file, i === 0, textOf(seen[i] as SeenFile), file.text, part, whole !== undefined));
  });
  // The files have the same owner and group.
  const awaits = parts.find((part) => part.awaits !== undefined)?.awaits ?? [];
  return {
    action: whole === undefined ? 'update' : 'create',
    changes: changes.filter(({ field }, i) => changes.findIndex((other) => other.field === field) === i),
    diff: null,
    ...(awaits.length === 0 ? {} : { awaits }),
  };
}

/** @param isFirst whether the file begins with the certificate of the server */
function changesOf(
  { name }: PlacedFile,
  isFirst: boolean,
  from: string | null,
  to: string | null,
  { action, changes }: Difference,
  isWhole: boolean,
): FieldChange[] {
  if (action === 'none') return [];
  const rest = changes
    .filter(({ field }) => field !== 'content' && field !== 'ensure')
    .map((change) => (name === 'key' ? { ...change, field: `key_${change.field}` } : change));
  if (!changes.some(({ field }) => field === 'content' || field === 'ensure')) return rest;
  const certificate = isFirst ? certificateChanges(from, to) : [];
  if (certificate.length > 0) return [...certificate, ...rest];
  if (isWhole && name !== 'key') return rest;
  return [
    { field: name, from: from === null ? null : `another ${name}`, to: to === null ? null : 'as declared' },
    ...rest,
  ];
}

/** Returns the differences between the first certificates in two PEM texts. */
function certificateChanges(from: string | null, to: string | null): FieldChange[] {
  const [was, becomes] = [firstCertificate(from), firstCertificate(to)];
  const values: [string, (certificate: NonNullable<typeof was>) => string][] = [
    ['fingerprint', ({ fingerprint256 }) => fingerprint256.replaceAll(':', '').toLowerCase()],
    ['not_after', (certificate) => shownTime(lifetimeOf([certificate]).until)],
    ['domains', (certificate) => namesOf(certificate).join(', ').slice(0, 1000)],
  ];
  return values.flatMap(([field, of]) => {
    const [old, next] = [was === null ? null : of(was), becomes === null ? null : of(becomes)];
    return old === next ? [] : [{ field, from: old, to: next }];
  });
}

/** Records the files that are about to change for the first time. */
export async function rememberFiles(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  seen: SeenFiles,
  before: FilesBefore | null,
  machine: Machine,
): Promise<FilesBefore> {
  refuseLinks(files, seen);
  const records: FilesBefore = [];
  for (const [i, file] of files.entries())
    records.push(await partOf(of, file).remember(seen[i] as SeenFile, before?.[i] ?? null, machine));
  return records;
}

/**
 * Writes the files that differ. All new contents are on disk before the first file is replaced, and the first file is
 * replaced last, so that a failure leaves the old files.
 */
export async function placeFiles(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  seen: SeenFiles,
  machine: Machine,
): Promise<void> {
  const parts = diffFiles(of, files, seen, { purpose: 'apply' });
  const place = async (i: number): Promise<void> => {
    const file = files[i];
    if (file === undefined) return;
    const part = parts[i] as Difference;
    const others = () => place(i + 1);
    if (part.action === 'none') return others();
    const as = declared(of, file);
    const content = { bytes: Buffer.from(file.text ?? '') };
    if (file.text !== null && isWritten(as.body, seen[i] as SeenFile, part.changes)) {
      await placeFile(as, seen[i] as SeenFile, part, content, machine, others);
      return;
    }
    await placeFile(as, seen[i] as SeenFile, part, content, machine);
    await others();
  };
  await place(0);
}

export async function lookAtFilesForRemoval(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  before: FilesBefore,
  machine: Machine,
): Promise<SeenFiles> {
  const seen: SeenFiles = [];
  for (const [i, file] of files.entries()) seen.push(await partOf(of, file).lookForRemoval(before[i] ?? null, machine));
  return seen;
}

const diffRemovals = (
  of: ResolvedResource,
  files: readonly PlacedFile[],
  before: FilesBefore,
  seen: SeenFiles,
  copies: Pick<ContentCopies, 'read'>,
): Difference[] => files.map((file, i) => partOf(of, file).diffRemoval(before[i] ?? null, seen[i] as SeenFile, copies));

export function diffFilesRemoval(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  before: FilesBefore,
  seen: SeenFiles,
  copies: Pick<ContentCopies, 'read'>,
): Difference {
  const parts = diffRemovals(of, files, before, seen, copies);
  if (parts.every(({ action }) => action === 'none')) {
    const isCreated = before.every((was) => was === null || was.was === 'absent');
    return nothing(
      parts.find(({ message }) => message)?.message ??
        (isCreated ? 'already removed' : 'already in its original state'),
    );
  }
  const restored = files.map((file, i) => ({
    ...file,
    text: textBefore(before[i] ?? null, seen[i] as SeenFile, copies),
  }));
  const { changes } = joinedDifference(restored, seen, parts);
  const messages = [
    ...new Set(parts.flatMap(({ action, message }) => (action === 'none' || !message ? [] : [message]))),
  ];
  return { action: 'remove', changes, diff: null, ...(messages.length === 0 ? {} : { message: messages.join('; ') }) };
}

const textBefore = (was: FileBefore | null, seen: SeenFile, copies: Pick<ContentCopies, 'read'>): string | null => {
  if (was === null || (was.was === 'file' && was.content === null)) return textOf(seen);
  if (was.was !== 'file' || was.content === null) return null;
  return copies.read(was.content, maxContentInMemory)?.toString('utf8') ?? null;
};

export async function restoreFiles(
  of: ResolvedResource,
  files: readonly PlacedFile[],
  before: FilesBefore,
  seen: SeenFiles,
  machine: Machine,
): Promise<void> {
  for (const [i, file] of files.entries())
    await partOf(of, file).restore(before[i] ?? null, seen[i] as SeenFile, machine);
}
