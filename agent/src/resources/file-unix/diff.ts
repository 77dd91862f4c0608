import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { exposes } from '../../host/files/decide-ownership.ts';
import type { FileContent } from '../../host/files/inspect.ts';
import { diffAcl, wantedEntries, widened, withinMask } from '../provider/acl.ts';
import { diffAttributes } from '../provider/attributes.ts';
import { diffCapabilities, expectOnlyRootWrites, recordedCapabilities } from '../provider/capabilities.ts';
import { diffOwnership, exposure, targetOwnership } from '../provider/ownership.ts';
import { type Circumstances, type Difference, nothing, presenceDrift, typeDrift } from '../provider/provider.ts';
import { copyExposure } from './copied.ts';
import {
  type Body,
  bodyOf,
  contentFor,
  contentText,
  createdMode,
  type DeclaredContent,
  declaredObject,
  disappearance,
  hashOf,
  isWritten,
  ownershipToKeep,
  plain,
  type SeenFile,
  showDiff,
  shown,
  withoutContent,
  wrongType,
} from './seen.ts';

export function diffFile(
  resource: ResolvedResource,
  seen: SeenFile,
  circumstances: Pick<Circumstances, 'purpose'> & Partial<Circumstances>,
): Difference {
  const difference = diffShown(resource, plain(seen), circumstances);
  const isCopy = [resource, circumstances.succeeded].some((each) => each != null && bodyOf(each).copy_of != null);
  return isCopy ? withoutContent(difference, seen) : difference;
}

function diffShown(
  resource: ResolvedResource,
  seen: SeenFile,
  {
    purpose,
    willBeThere = () => false,
    willChange = () => false,
    succeeded = null,
  }: Pick<Circumstances, 'purpose'> & Partial<Circumstances>,
): Difference {
  const body = bodyOf(resource);
  const { found } = seen;
  if (found.type === 'directory' || found.type === 'other') {
    if (purpose === 'drift')
      return body.ensure === 'absent' ? presenceDrift() : typeDrift(found, body.symlink == null ? 'file' : 'symlink');
    throw wrongType(body.path, found);
  }
  if (body.ensure === 'absent') return found.type === 'absent' ? nothing() : disappearance(body.path, found);
  if (body.symlink != null) return diffSymlink(body, body.symlink, seen);
  const declared = contentFor(resource, seen);
  if (found.type === 'symlink' && declared === null && body.copy_of == null) {
    if (purpose === 'drift') return typeDrift(found, 'file');
    throw new HostFailure(
      `${body.path} is a symbolic link; declare \`symlink\`, or the content of a file to replace it`,
    );
  }
  const changes: FieldChange[] = [];
  let diff: string | null = null;
  const file = found.type === 'file' ? found : null;
  if (found.type === 'absent') changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (found.type === 'symlink') changes.push({ field: 'symlink', from: shown(found.target), to: null });
  const copy = seen.copied === undefined || body.copy_of == null ? null : { of: body.copy_of, copied: seen.copied };
  if (copy !== null) changes.push(...diffCopy(copy, declared, file?.content ?? null, purpose, willChange(copy.of)));
  else if (declared !== null && (file?.content == null || !sameContent(file.content, declared))) {
    changes.push({
      field: 'content',
      from: file?.content == null ? null : contentText(file.content),
      to: contentText({ sha256: hashOf(declared), size: declared.size }),
    });
    const bytes = declared.bytes ?? (declared.size === 0 ? Buffer.alloc(0) : (seen.source ?? null));
    diff = showDiff(body.path, file?.content ?? null, { bytes, size: declared.size });
  }
  const object = declaredObject(body, isWritten(body, seen, changes));
  const ownership = diffOwnership(body, ownershipToKeep(found, body), seen.ownership, object);
  changes.push(...ownership.changes);
  const target = targetOwnership(body, ownershipToKeep(found, body), seen.ownership, object, createdMode);
  const acl = diffAcl(body.path, seen.acl, target.mode, purpose === 'drift');
  const attributes = diffAttributes(body.path, seen.attributes, body.attributes, purpose === 'drift');
  const capabilities = diffCapabilities(body.path, seen.capabilities, body.capabilities, purpose === 'drift');
  changes.push(...acl.changes, ...attributes.changes, ...capabilities.changes);
  if (changes.length === 0) return nothing();
  const opened = seen.acl === undefined ? target : widened(target, wantedEntries(seen.acl, target.mode));
  const refused = copy?.copied == null || purpose === 'drift' ? null : copyExposure(copy.copied, opened);
  if (refused !== null) throw refused;
  if (file !== null && declared === null && purpose !== 'drift') {
    if (exposes(withinMask(file, seen.acl), opened, 'file'))
      throw exposure(body.path, seen.ownership.ownerName, target);
  }
  // The plan fails as the apply would before it records the capabilities.
  if (purpose !== 'drift' && (succeeded === null || bodyOf(succeeded).capabilities == null))
    recordedCapabilities(body.path, undefined, seen.capabilities);
  if ((body.capabilities ?? []).length > 0 && purpose !== 'drift') {
    const kept = file === null || isWritten(body, seen, changes) ? null : withinMask(file, seen.acl);
    expectOnlyRootWrites(body.path, kept, opened);
  }
  const awaits = [...ownership.awaits, ...acl.awaits, ...attributes.awaits, ...capabilities.awaits];
  if (copy?.copied === null && !willBeThere(copy.of) && purpose !== 'drift')
    awaits.push({
      kind: 'programs',
      message: `there is no file ${copy.of} to copy to ${body.path}; declare the resource that creates it before this one`,
    });
  if (isWritten(body, seen, changes) && seen.missingProgram !== undefined && purpose !== 'drift')
    awaits.push({
      kind: 'programs',
      message: `\`validate\` of ${body.path} needs ${resource.sensitive_fields.includes('validate') ? 'a program' : seen.missingProgram}, which does not exist`,
    });
  return {
    action: found.type === 'absent' ? 'create' : 'update',
    changes,
    diff,
    ...(awaits.length === 0 ? {} : { awaits }),
  };
}

/**
 * Compares the file with the one to copy.
 * @param willChange whether an earlier step of a plan changes the file to copy, so that its content is not known yet
 */
function diffCopy(
  { of, copied }: { of: string; copied: SeenFile['copied'] },
  declared: DeclaredContent | null,
  content: FileContent | null,
  purpose: Circumstances['purpose'],
  willChange: boolean,
): FieldChange[] {
  const from = content === null ? null : contentText({ sha256: null, size: content.size });
  if (copied == null || willChange)
    // Without the file to copy, drift cannot be detected.
    return purpose === 'drift' ? [] : [{ field: 'content', from, to: `the later content of ${of}` }];
  if (declared === null || (content !== null && sameContent(content, declared))) return [];
  return [{ field: 'content', from, to: `${declared.size} bytes, as ${of}` }];
}

/** Compares the bytes if both are in memory; otherwise, the hashes. */
export function sameContent(found: FileContent, declared: DeclaredContent): boolean {
  if (found.size !== declared.size) return false;
  return found.bytes === null || declared.bytes === null
    ? found.sha256 === hashOf(declared)
    : found.bytes.equals(declared.bytes);
}

function diffSymlink(body: Body, target: string, seen: SeenFile): Difference {
  const { found } = seen;
  const changes: FieldChange[] = [];
  let diff: string | null = null;
  if (found.type === 'absent') changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (found.type !== 'symlink' || found.target !== target)
    changes.push({ field: 'symlink', from: found.type === 'symlink' ? shown(found.target) : null, to: shown(target) });
  if (found.type === 'file') {
    if (found.content !== null) diff = showDiff(body.path, found.content, null);
    changes.push({ field: 'content', from: found.content === null ? null : contentText(found.content), to: null });
  }
  const { owner, group } = body;
  const ownership = diffOwnership(
    { ...(owner == null ? {} : { owner }), ...(group == null ? {} : { group }) },
    ownershipToKeep(found, body),
    seen.ownership,
    { type: 'symlink' },
  );
  changes.push(...ownership.changes);
  if (changes.length === 0) return nothing();
  return {
    action: found.type === 'absent' ? 'create' : 'update',
    changes,
    diff,
    ...(ownership.awaits.length === 0 ? {} : { awaits: ownership.awaits }),
  };
}
