import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { missingProgram } from '../../host/processes/find-program.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine } from '../provider/provider.ts';
import { applyFile, rememberFile } from './apply.ts';
import { broughtBy } from './brought.ts';
import { diffFile, sameContent } from './diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from './removal.ts';
import {
  bodyOf,
  type DeclaredContent,
  declaredContent,
  type FileBefore,
  fileInBrief,
  fileWeight,
  look,
  pathOf,
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
    symlink: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    validate: 'text?',
    if_exists: 'text?',
    ensure: 'text?',
  },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check(resource) {
    checkPath(pathOf(resource));
    const declared = declaredContent(resource);
    if (declared?.bytes === null && !/^[0-9a-f]{64}$/.test(declared.source.sha256))
      throw new HostFailure('the orchestrator sent a source whose hash is not a SHA-256');
  },

  async observe(resource, { purpose }, machine) {
    const body = bodyOf(resource);
    const declared = declaredContent(resource);
    const wantContent =
      (declared !== null && body.if_exists !== 'keep') || body.ensure === 'absent' || body.symlink != null;
    const looked = await look(resource, machine, wantContent, declared === null ? [] : [declared.size]);
    const seen =
      purpose === 'drift' || body.if_exists === 'keep' ? looked : await withSource(looked, declared, machine);
    const missing = body.validate == null ? null : missingProgram(body.validate);
    return missing === null ? seen : { ...seen, missingProgram: missing };
  },

  diff: (resource, seen, circumstances) => diffFile(asFound(resource, seen), seen, circumstances),
  inBrief: (seen) => JSON.parse(JSON.stringify(fileInBrief(seen))),
  weight: fileWeight,
  remember: (resource, seen, ...rest) => rememberFile(asFound(resource, seen), seen, ...rest),
  apply: (resource, seen, ...rest) => applyFile(asFound(resource, seen), seen, ...rest),
  observeForRemoval: observeFileForRemoval,
  diffRemoval: (resource, before, seen, _circumstances, copies) => diffFileRemoval(resource, before, seen, copies),
  remove: removeOrRestoreFile,
});

/** Returns the resource without its content if the existing file keeps its content. */
function asFound(resource: ResolvedResource<'file-unix'>, { found }: SeenFile): ResolvedResource<'file-unix'> {
  if (resource.body.if_exists !== 'keep' || found.type === 'absent') return resource;
  const { content: _content, content_base64: _base64, source: _source, validate: _validate, ...body } = resource.body;
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
