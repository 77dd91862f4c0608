import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { lacksAclPrograms, readAcl } from '../../host/files/acl-entries.ts';
import type { Attribute } from '../../host/files/attributes.ts';
import { asCreated, type OwnedObject, setIdBits, sharedWriteBits } from '../../host/files/decide-ownership.ts';
import { contentOf, hashLarge, type Inspected, inspect, type Ownership, withFile } from '../../host/files/inspect.ts';
import { losesWriter, type SeenAcl, seenAcl, withoutMask } from '../provider/acl.ts';
import type { SeenAttributes } from '../provider/attributes.ts';
import type { SeenCapabilities } from '../provider/capabilities.ts';
import { contentDiff, largeContentDiff } from '../provider/content-diff.ts';
import { lookUpOwnership, parseMode, type RecordedFile, type SeenOwnership } from '../provider/ownership.ts';
import type { CopyReference, Difference, Machine } from '../provider/provider.ts';
import type { Copied } from './copied.ts';

export interface SeenFile {
  found: Inspected;
  ownership: SeenOwnership;
  /** The ACL; observed only if the resource declares it, or a removal restores it. */
  acl?: SeenAcl;
  /** The attributes; observed only if the resource declares them, or a removal restores them. */
  attributes?: SeenAttributes;
  /** The capabilities; observed only if the resource declares them, or a removal restores them. */
  capabilities?: SeenCapabilities;
  /** The content of the source, if it is needed for a diff; not journaled. */
  source?: Buffer;
  /** The file to copy; null if it does not exist. Observed only if the resource declares it and needs its content. */
  copied?: Copied | null;
  /** The program of `validate`, only if it is missing. */
  missingProgram?: string;
}

/** The file before the agent first changed it. If it existed, the fields in `touched` are restored. */
export type FileBefore = (
  | { was: 'absent' }
  | { was: 'symlink'; target: string; uid: number; gid: number }
  | ({ was: 'file' /** The capabilities, if the resource declared some. */; capabilities?: string } & RecordedFile)
) & {
  /** The attributes, if the resource declared some. Empty if there was no file. */
  attributes?: Attribute[];
};

/** Returns the journaled form, without content, because the agent may not own the file. */
export const fileInBrief = ({ source: _, copied, ...seen }: SeenFile): SeenFile => ({
  ...seen,
  found: withoutBytes(seen.found),
  ...(copied == null ? {} : { copied: { ...copied, found: withoutBytes(copied.found) } }),
  ...(copied === null ? { copied } : {}),
});

const withoutBytes = <F extends Inspected>(found: F): F =>
  found.type === 'file' && found.content !== null ? { ...found, content: { ...found.content, bytes: null } } : found;

/** Returns the size of the content in memory, in bytes. */
export const fileWeight = ({ found, source, copied }: SeenFile): number =>
  bytesOf(found) + (source?.length ?? 0) + (copied == null ? 0 : bytesOf(copied.found));

const bytesOf = (found: Inspected): number => (found.type === 'file' ? (found.content?.bytes?.length ?? 0) : 0);

export type Body = ResourceBodies['file-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;
export const pathOf = (resource: ResolvedResource): string => bodyOf(resource).path;

/**
 * Returns the observation with the permissions of the owning group in place of the mask of an ACL. Decisions need it;
 * comparisons with the file on the machine need the original.
 */
export const plain = (seen: SeenFile): SeenFile =>
  seen.acl === undefined ? seen : { ...seen, found: withoutMask(seen.found, seen.acl) };

export const createdMode = 0o644;
/** Formats content for a field change: its hash, or its size if it was not hashed. */
export const contentText = (content: { sha256: string | null; size: number }): string =>
  content.sha256 === null ? `${content.size} bytes` : `sha256:${content.sha256}`;

/** The content that a resource declares: in its body, in a file in its module, or in a file to copy. */
export type DeclaredContent = { bytes: Buffer; size: number } | { bytes: null; size: number; source: CopyReference };

/** @throws HostFailure if the source has no content */
export function declaredContent({ body, source }: Pick<ResolvedResource, 'body' | 'source'>): DeclaredContent | null {
  const { content, content_base64, source: path } = body as Body;
  const bytes =
    content != null
      ? Buffer.from(content, 'utf8')
      : content_base64 != null
        ? Buffer.from(content_base64, 'base64')
        : null;
  if (bytes !== null) return { bytes, size: bytes.length };
  if (path == null) return null;
  if (source === undefined)
    throw new HostFailure(`the orchestrator sent no content for the source ${path}; update the orchestrator`);
  return { bytes: null, size: source.size, source };
}

/** @returns null if the resource declares no content, or the file to copy does not exist */
export function contentFor(resource: ResolvedResource, { copied }: SeenFile): DeclaredContent | null {
  if (copied == null) return declaredContent(resource);
  const { sha256, found } = copied;
  const bytes = found.content?.bytes ?? null;
  const { size } = found;
  return bytes === null ? { bytes, size, source: { sha256, size } } : { bytes, size };
}

/** Returns the SHA-256 of declared content, in hexadecimal. */
export const hashOf = (declared: DeclaredContent): string =>
  declared.bytes === null ? declared.source.sha256 : contentOf(declared.bytes).sha256;

export const wrongType = (path: string, found: Inspected): HostFailure =>
  new HostFailure(
    `${path} is a ${found.type === 'other' ? found.kind : found.type}, not a file; it is not changed. Remove it by hand, or change its declaration.`,
  );

/**
 * Returns the ownership to keep; null if the path does not exist. A file that replaces a link keeps only the owner and
 * group, because links have no permissions.
 */
export const ownershipToKeep = (found: Inspected, body: Body): Ownership | null =>
  found.type === 'absent'
    ? null
    : found.type === 'symlink' && body.symlink == null && body.mode == null
      ? { ...found, mode: createdMode }
      : found;

const writingFields = new Set(['content', 'ensure', 'symlink']);

/**
 * Reports whether the file is rewritten completely: either its content changes, or its content is declared and a former
 * writer may have the file open, because it changes owner, loses write permission of the group, of others, or of an
 * ACL, or gets a set-ID bit.
 * @param changes known changes
 */
export function isWritten(body: Body, { found, ownership, acl }: SeenFile, changes: readonly FieldChange[]): boolean {
  if (changes.some(({ field }) => writingFields.has(field))) return true;
  if ((body.content ?? body.content_base64 ?? body.source ?? body.copy_of) == null || found.type !== 'file')
    return false;
  if (acl !== undefined && losesWriter(acl)) return true;
  if (body.mode != null) {
    const mode = parseMode(body.mode);
    if ((found.mode & ~mode & sharedWriteBits) !== 0 || (mode & ~found.mode & setIdBits) !== 0) return true;
  }
  if (body.owner == null) return false;
  return found.uid !== ownership.wantedUid && found.uid !== asCreated(createdMode).uid;
}

/** @param written whether the file is rewritten completely */
export const declaredObject = (body: Body, written: boolean): OwnedObject =>
  body.symlink != null ? { type: 'symlink' } : { type: 'file', content: written ? 'written' : 'kept' };

/**
 * Observes the file.
 * @param declaredSizes sizes of the contents to compare with; a large file of a different size is not read
 */
export function look(
  resource: ResolvedResource,
  machine: Pick<Machine, 'walk' | 'accounts'>,
  wantContent: boolean,
  declaredSizes: readonly number[],
): SeenFile | Promise<SeenFile> {
  const path = pathOf(resource);
  const found = inspect(machine.walk, path, wantContent);
  const owned = found.type === 'absent' ? null : found;
  const ownership = lookUpOwnership(bodyOf(resource), owned, machine.accounts);
  const content = found.type === 'file' ? found.content : null;
  if (content === null || content.sha256 !== null || !declaredSizes.includes(content.size)) return { found, ownership };
  return hashLarge(machine.walk, path, found, content.size).then((sha256) => ({
    found: { ...found, content: { ...content, sha256 } } as Inspected,
    ownership,
  }));
}

/**
 * Reads the ACL of a file, if it exists.
 * @param acl declared entries
 */
export async function lookAtAcl(
  path: string,
  { found }: SeenFile,
  acl: readonly string[],
  { walk, accounts }: Pick<Machine, 'walk' | 'accounts'>,
): Promise<SeenAcl> {
  const read =
    found.type !== 'file' || lacksAclPrograms()
      ? null
      : await withFile(walk, path, found, (fd) => readAcl(`/proc/${process.pid}/fd/${fd}`, path));
  return seenAcl(acl, read, accounts);
}

export const shown = (text: string): string => (text.length > 4096 ? `${text.slice(0, 4090)}…` : text);

interface Showable {
  bytes: Buffer | null;
  size: number;
}

export function showDiff(path: string, before: Showable | null, after: Showable | null): string {
  if (before?.bytes === null || after?.bytes === null)
    return largeContentDiff(path, before?.size ?? null, after?.size ?? null);
  return contentDiff(path, before?.bytes ?? null, after?.bytes ?? null);
}

export function disappearance(
  path: string,
  found: Exclude<Inspected, { type: 'absent' | 'directory' | 'other' }>,
): Difference {
  const changes: FieldChange[] = [{ field: 'ensure', from: 'present', to: 'absent' }];
  let diff: string | null = null;
  if (found.type === 'symlink') changes.push({ field: 'symlink', from: shown(found.target), to: null });
  else if (found.content !== null) diff = showDiff(path, found.content, null);
  return { action: 'remove', changes, diff };
}

/**
 * Returns the difference with sizes instead of content and its hashes. The agent cannot determine whether a copied file
 * contains a secret, which could be guessed from a hash.
 */
export function withoutContent(difference: Difference, { found }: SeenFile): Difference {
  const size = found.type === 'file' ? found.size : null;
  const changes = difference.changes.map((change) =>
    change.field === 'content' && change.from !== null && size !== null
      ? { ...change, from: contentText({ sha256: null, size }) }
      : change,
  );
  return { ...difference, changes, diff: null };
}
