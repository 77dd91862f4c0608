import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { defineProvider } from '../provider/define-provider.ts';
import {
  type Difference,
  type Machine,
  nothing,
  type Outcome,
  presenceDrift,
  restoring,
} from '../provider/provider.ts';
import { applyGit, type GitBefore, rememberGit, removeGit } from './apply.ts';
import { diffGit, expectNothingLost } from './diff.ts';
import type { Declared } from './run-git.ts';
import { commitsChanged, lookAtGit, type SeenGit } from './seen.ts';

/** A working copy of a Git repository, at one commit. */
export const git = defineProvider<'git', SeenGit, GitBefore>({
  type: 'git',
  fields: {
    path: 'text',
    url: 'text',
    revision: 'text',
    user: 'text?',
    key: 'text?',
    depth: 'integer?',
    submodules: 'boolean?',
    force: 'boolean?',
    ensure: 'text?',
  },
  path: ({ body }) => body.path,
  makes: ({ body }) => [body.path],
  check({ body }) {
    checkPath(body.path);
    if (/^-|^ext::|^fd::/.test(body.url) || body.revision.startsWith('-'))
      throw new HostFailure('`url` and `revision` must not be options of git');
  },
  observe: lookAtGit,
  diff: diffGit,
  remember: async (_resource, seen, _difference, before) => rememberGit(seen, before),
  apply: (resource, seen, _difference, machine) => changed(machine, applyGit(resource, seen, machine)),
  observeForRemoval: (resource, _before, machine) => lookAtGit(absent(resource), { purpose: 'apply' }, machine),
  diffRemoval,
  remove: (resource, before, seen, _difference, machine) =>
    changed(machine, removeGit(resource, before, seen, machine)),
});

const changed = (machine: Machine, change: Promise<Outcome>): Promise<Outcome> =>
  change.finally(() => commitsChanged(machine));

/** Returns the resource declared as absent, so that its revision is not looked up. */
const absent = (resource: Declared): Declared => ({ ...resource, body: { ...resource.body, ensure: 'absent' } });

function diffRemoval({ body }: Declared, before: GitBefore, seen: SeenGit): Difference {
  const { copy, found, kept } = seen;
  // A working copy that others created is kept, with its untracked files.
  const lost = copy !== null && before.was === 'copy' ? { ...copy, untracked: null } : copy;
  if (lost !== null && body.force !== true) expectNothingLost(body.path, lost);
  if (before.was === 'absent') {
    return found === 'absent' && kept === null ? nothing('already removed') : presenceDrift();
  }
  if (kept !== null && before.was !== 'directory')
    return restoring([{ field: 'ensure', from: 'absent', to: 'as before' }]);
  if (before.was === 'directory') {
    const isBack = found === 'empty directory' && kept === null;
    return restoring(isBack ? [] : [{ field: 'ensure', from: 'present', to: 'empty directory' }]);
  }
  if (before.was === 'other' || found !== 'working copy') return restoring([]);
  if (copy !== null && copy.last === null && copy.head === before.head) return restoring([]);
  return restoring([{ field: 'revision', from: copy?.head ?? null, to: before.head }]);
}
