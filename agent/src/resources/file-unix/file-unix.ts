import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { hashLarge } from '../../host/files/inspect.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import { checkAcl } from '../provider/acl.ts';
import { checkAttributes, concernsAttributes, lookAtAttributes } from '../provider/attributes.ts';
import { checkCapabilities, lookAtCapabilities } from '../provider/capabilities.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { formatMode } from '../provider/ownership.ts';
import type { Machine } from '../provider/provider.ts';
import { applyFile, rememberFile } from './apply.ts';
import { broughtBy } from './brought.ts';
import { lookAtCopied, narrowedMode } from './copied.ts';
import { diffFile, sameContent } from './diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from './removal.ts';
import {
  bodyOf,
  createdMode,
  type DeclaredContent,
  declaredContent,
  type FileBefore,
  fileInBrief,
  fileWeight,
  look,
  lookAtAcl,
  pathOf,
  plain,
  type SeenFile,
} from './seen.ts';

/** A file or symbolic link: its content, owner, group and permissions. */
export const fileUnix = defineProvider<'file-unix', SeenFile, FileBefore>({
  type: 'file-unix',
  fields: {
    path: 'text',
    content: 'text?',
    content_base64: 'text?',
    source: 'text?',
    copy_of: 'text?',
    symlink: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    acl: 'list?',
    attributes: 'list?',
    capabilities: 'list?',
    validate: 'text?',
    if_exists: 'text?',
    ensure: 'text?',
  },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,
  watched: ({ body: { path, copy_of } }) => (copy_of == null ? [path] : [path, copy_of]),
  reads: ({ body: { copy_of } }) => (copy_of == null ? [] : [copy_of]),

  check(resource) {
    checkPath(pathOf(resource));
    checkAcl(resource.body.acl, 'file');
    checkAttributes(resource.body.attributes);
    checkCapabilities(resource.body.capabilities);
    const { path, copy_of } = resource.body;
    if (copy_of != null) checkPath(copy_of);
    if (copy_of === path) throw new HostFailure('`copy_of` must be the path of another file');
    const declared = declaredContent(resource);
    if (declared?.bytes === null && !/^[0-9a-f]{64}$/.test(declared.source.sha256))
      throw new HostFailure('the orchestrator sent a source whose hash is not a SHA-256');
  },

  async observe(resource, { purpose, succeeded }, machine) {
    const body = bodyOf(resource);
    const declared = declaredContent(resource);
    const isCopy = body.copy_of != null && body.ensure !== 'absent';
    const wantContent =
      ((declared !== null || isCopy) && body.if_exists !== 'keep') || body.ensure === 'absent' || body.symlink != null;
    const inspected = await look(resource, machine, wantContent, declared === null ? [] : [declared.size]);
    const isFile = body.ensure !== 'absent' && body.symlink == null;
    const looked = {
      ...inspected,
      ...(isFile && body.acl != null ? { acl: await lookAtAcl(body.path, inspected, body.acl, machine) } : {}),
      ...(concernsAttributes(body, succeeded)
        ? { attributes: await lookAtAttributes(body.path, inspected.found, machine) }
        : {}),
      ...(isFile && body.capabilities != null
        ? { capabilities: await lookAtCapabilities(body.path, inspected.found, machine) }
        : {}),
    };
    const seen = isCopy
      ? await withCopied(looked, resource, machine)
      : purpose === 'drift' || body.if_exists === 'keep'
        ? looked
        : await withSource(looked, declared, machine);
    const missing = body.validate == null ? null : missingProgram(body.validate);
    return missing === null ? seen : { ...seen, missingProgram: missing };
  },

  diff: (resource, seen, circumstances) => diffFile(asFound(resource, plain(seen)), seen, circumstances),
  inBrief: (seen) => JSON.parse(JSON.stringify(fileInBrief(seen))),
  weight: fileWeight,
  remember: (resource, seen, difference, before, machine) =>
    rememberFile(asFound(resource, plain(seen)), seen, difference, before, machine),
  apply: (resource, seen, ...rest) => applyFile(asFound(resource, plain(seen)), seen, ...rest),
  observeForRemoval: observeFileForRemoval,
  diffRemoval: (resource, before, seen, _circumstances, copies) => diffFileRemoval(resource, before, seen, copies),
  remove: removeOrRestoreFile,
});

/**
 * Returns the resource as it applies to the existing file: without content if `if_exists` keeps the file, and with a
 * mode if a copy must have narrower permissions than the default.
 */
function asFound(resource: ResolvedResource<'file-unix'>, seen: SeenFile): ResolvedResource<'file-unix'> {
  const { found, copied } = seen;
  if (resource.body.if_exists !== 'keep' || found.type === 'absent') {
    const mode = copied == null || resource.body.mode != null ? null : narrowedMode(found, copied, createdMode);
    return mode === null ? resource : { ...resource, body: { ...resource.body, mode: formatMode(mode) } };
  }
  const { content: _content, content_base64: _base64, source: _source, copy_of: _copy, ...rest } = resource.body;
  const { validate: _validate, ...body } = rest;
  return { ...resource, body };
}

/** Maximum size of a source that appears in diffs, in bytes. A larger source is fetched when the file is written. */
const maxShownSource = 256 * 1024;

/** Adds the content of the source if it differs from the file and is small enough for a diff. */
async function withSource(seen: SeenFile, declared: DeclaredContent | null, machine: Machine): Promise<SeenFile> {
  if (declared?.bytes !== null || declared.size === 0 || declared.size > maxShownSource) return seen;
  const content = seen.found.type === 'file' ? seen.found.content : null;
  if (content !== null && (content.bytes === null || sameContent(content, declared))) return seen;
  return { ...seen, source: await machine.useContent(declared.source, ({ read }) => read()) };
}

/** Adds the file to copy, unless the existing file keeps its content. */
async function withCopied(
  seen: SeenFile,
  { body }: ResolvedResource<'file-unix'>,
  machine: Machine,
): Promise<SeenFile> {
  const { found } = seen;
  if (body.copy_of == null || (body.if_exists === 'keep' && found.type !== 'absent')) return seen;
  const copied = await lookAtCopied(body.copy_of, machine);
  const content = found.type === 'file' ? found.content : null;
  if (found.type !== 'file' || content === null || content.sha256 !== null || content.size !== copied?.found.size)
    return { ...seen, copied };
  const sha256 = await hashLarge(machine.walk, body.path, found, content.size);
  return { ...seen, copied, found: { ...found, content: { ...content, sha256 } } };
}
