import { checkPath } from '../host/files/path-walk.ts';
import { missingProgram } from '../host/processes/find-program.ts';
import { applyFile, rememberFile } from './file-unix/apply.ts';
import { broughtBy } from './file-unix/brought.ts';
import { diffFile } from './file-unix/diff.ts';
import { diffFileRemoval, observeFileForRemoval, removeOrRestoreFile } from './file-unix/removal.ts';
import {
  bodyOf,
  declaredContent,
  type FileBefore,
  fileInBrief,
  fileWeight,
  look,
  pathOf,
  type SeenFile,
} from './file-unix/seen.ts';
import { defineProvider } from './provider/define-provider.ts';

/** A file or symbolic link: its content, owner, group and permissions. */
export const fileUnix = defineProvider<'file-unix', SeenFile, FileBefore>({
  type: 'file-unix',
  fields: {
    path: 'text',
    content: 'text?',
    content_base64: 'text?',
    symlink: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    validate: 'text?',
    ensure: 'text?',
  },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check(resource) {
    checkPath(pathOf(resource));
  },

  observe(resource, _circumstances, machine) {
    const body = bodyOf(resource);
    const declared = declaredContent(body);
    const wantContent = declared !== null || body.ensure === 'absent' || body.symlink != null;
    const seen = look(resource, machine, wantContent, declared === null ? [] : [declared.length]);
    const missing = body.validate == null ? null : missingProgram(body.validate);
    if (missing === null) return seen;
    const without = (looked: SeenFile): SeenFile => ({ ...looked, missingProgram: missing });
    return seen instanceof Promise ? seen.then(without) : without(seen);
  },

  diff: diffFile,
  inBrief: (seen) => JSON.parse(JSON.stringify(fileInBrief(seen))),
  weight: fileWeight,
  remember: rememberFile,
  apply: applyFile,
  observeForRemoval: observeFileForRemoval,
  diffRemoval: (resource, before, seen, _circumstances, copies) => diffFileRemoval(resource, before, seen, copies),
  remove: removeOrRestoreFile,
});
