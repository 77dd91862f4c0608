import { posix } from 'node:path';
import { HostFailure, hostFailure } from '../../host/failure.ts';
import { setProtectedOwnership } from '../../host/files/ownership.ts';
import { removeTree } from '../../host/trees/archive-tools.ts';
import { makePrivateDirectory, moveEntry, removeIfEmpty, statusOf } from '../../host/trees/entries.ts';
import { besideName } from '../../host/trees/tree-names.ts';
import { folderOf, trustedPath } from '../archive/place.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import type { ScriptAccount } from '../script/launch.ts';
import { requirePrerequisites } from '../script/prerequisites.ts';
import { type Declared, gitFailure, runGit } from './run-git.ts';
import { type SeenGit, userOf } from './seen.ts';

/** The state before the agent's first change. */
export type GitBefore =
  | { was: 'absent' }
  | { was: 'directory'; uid: number; gid: number; mode: number }
  | { was: 'copy'; head: string | null; branch: string | null; url: string | null }
  /** The object at the path was renamed and kept in the same directory, because the path was declared absent. */
  | { was: 'other' };

/** Milliseconds for fetching and checking out. */
const fetchMs = 60 * 60_000;

export function rememberGit({ found, directory, copy }: SeenGit, before: GitBefore | null): GitBefore {
  if (before !== null) return before;
  if (directory !== null) return { was: 'directory', ...directory };
  if (copy !== null) return { was: 'copy', head: copy.head, branch: copy.branch, url: copy.url };
  return { was: found === 'absent' ? 'absent' : 'other' };
}

/**
 * Fetches the revision and checks it out. `refs/muster/revision` stores the commit, so that drift can be detected
 * without a network. Arguments: the URL, the revision, its commit, the depth or an empty string, and for each of
 * `force` and `submodules`, 1 or an empty string.
 */
const checkOutText = `
set -e
url=$1 revision=$2 commit=$3 depth=$4 force=$5 submodules=$6
git config remote.origin.url "$url"
git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
has() { git cat-file -e "$commit^{commit}" 2>/dev/null; }
if ! has; then
  if [ -n "$depth" ]; then
    git fetch -q --no-tags --depth "$depth" origin "$commit" 2>/dev/null ||
      git fetch -q --no-tags --depth "$depth" origin "+refs/tags/$revision:refs/tags/$revision" 2>/dev/null ||
      git fetch -q --no-tags --depth "$depth" origin "$revision" 2>/dev/null || true
  fi
  has || git fetch -q --tags --force origin
fi
has || { echo "the repository has no commit $commit, or $revision moved during the apply" >&2; exit 1; }
[ -z "$force" ] || git reset -q --hard
git checkout -q --detach \${force:+--force} "$commit" --
git update-ref refs/muster/revision "$commit"
if [ -n "$submodules" ]; then
  git submodule -q sync --recursive
  git submodule -q update --init --recursive \${force:+--force} \${depth:+--depth "$depth"}
fi`;

export async function applyGit(resource: Declared, seen: SeenGit, machine: Machine): Promise<Outcome> {
  const { path, ensure } = resource.body;
  const folder = trustedPath(machine.walk, folderOf(path), ensure === 'absent' ? 'null' : 'make');
  if (folder === null) return {};
  const name = posix.basename(path);
  if (ensure === 'absent') {
    await putAside(folder, name, machine);
    return {};
  }
  const account = await requirePrerequisites({ program: 'git', ...userOf(resource) }, machine);
  if (seen.found === 'working copy') {
    await checkOut(resource, seen, path, account, machine);
    return {};
  }
  const fresh = `${folder}/${besideName(name, 'new')}`;
  await removeTree(fresh, machine);
  try {
    makePrivateDirectory(fresh);
    const owner = account ?? { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
    setProtectedOwnership(fresh, { uid: owner.uid, gid: owner.gid, mode: 0o700 });
    await checkOut(resource, seen, fresh, account, machine);
    setProtectedOwnership(fresh, { uid: owner.uid, gid: owner.gid, mode: 0o755 });
    // Replaces an empty directory.
    moveEntry(fresh, `${folder}/${name}`);
    machine.changedDirectory(folder);
  } catch (error) {
    throw hostFailure(error, `create ${path}`);
  } finally {
    await removeTree(fresh, machine);
  }
  return {};
}

/** @param directory the working copy, or an empty directory */
async function checkOut(
  resource: Declared,
  { wanted }: SeenGit,
  directory: string,
  account: ScriptAccount | null,
  machine: Machine,
): Promise<void> {
  const { url, revision, depth, force, submodules } = resource.body;
  if (wanted === null) throw new HostFailure('the commit of `revision` is not known; apply again');
  const flag = (value: boolean | null | undefined): string => (value === true ? '1' : '');
  const run = {
    text: `git rev-parse -q --git-dir >/dev/null 2>&1 || git init -q\n${checkOutText}`,
    args: [url, revision, wanted, depth == null ? '' : String(depth), flag(force), flag(submodules)],
    ...{ directory, timeLimit: fetchMs, account },
  };
  const result = await runGit(resource, run, machine);
  if (result.exitCode !== 0) throw gitFailure(`check out ${revision} of ${url}`, result);
}

/** Renames the object at the path within its directory. The original object is kept; a later one is deleted. */
async function putAside(folder: string, name: string, machine: Machine): Promise<void> {
  const [path, kept] = [`${folder}/${name}`, `${folder}/${besideName(name, 'before')}`];
  if (statusOf(path) === null) return;
  if (statusOf(kept) === null) moveEntry(path, kept);
  else await takeAway(folder, name, machine);
  machine.changedDirectory(folder);
}

async function takeAway(folder: string, name: string, machine: Machine): Promise<void> {
  const old = `${folder}/${besideName(name, 'old')}`;
  await removeTree(old, machine);
  if (statusOf(`${folder}/${name}`) !== null) moveEntry(`${folder}/${name}`, old);
  await removeTree(old, machine);
}

/** Arguments, each of which may be empty: the commit, the branch, the URL, and `1` to discard local changes. */
const restoreText = `
set -e
git rev-parse -q --verify refs/muster/revision >/dev/null || exit 0
[ -z "$4" ] || git reset -q --hard
if [ -n "$2" ]; then git checkout -q "\${2#refs/heads/}" --; else git checkout -q --detach "$1" --; fi
if [ -n "$3" ]; then git config remote.origin.url "$3"; else git remote remove origin; fi
git update-ref -d refs/muster/revision`;

/** Restores the original object. */
export async function removeGit(
  resource: Declared,
  before: GitBefore,
  seen: SeenGit,
  machine: Machine,
): Promise<Outcome> {
  const { path, force } = resource.body;
  const folder = trustedPath(machine.walk, folderOf(path), 'null');
  if (folder === null) return {};
  const name = posix.basename(path);
  const kept = `${folder}/${besideName(name, 'before')}`;
  await removeTree(`${folder}/${besideName(name, 'new')}`, machine);
  if (seen.kept !== null || before.was !== 'copy') {
    await takeAway(folder, name, machine);
    if (before.was === 'absent' || before.was === 'directory') await removeTree(kept, machine);
    else if (seen.kept !== null) moveEntry(kept, `${folder}/${name}`);
    if (before.was === 'directory') restoreDirectory(`${folder}/${name}`, before);
    machine.changedDirectory(folder);
  }
  if (before.was === 'copy') {
    const account = await requirePrerequisites({ program: 'git', ...userOf(resource) }, machine);
    const args = [before.head ?? '', before.branch ?? '', before.url ?? '', force === true ? '1' : ''];
    const result = await runGit(
      resource,
      { text: restoreText, args, directory: path, timeLimit: fetchMs, account },
      machine,
    );
    if (result.exitCode !== 0) throw gitFailure(`restore the working copy ${path}`, result);
  }
  return {};
}

function restoreDirectory(path: string, { uid, gid, mode }: Extract<GitBefore, { was: 'directory' }>): void {
  try {
    makePrivateDirectory(path);
    setProtectedOwnership(path, { uid, gid, mode });
  } catch (error) {
    removeIfEmpty(path);
    throw hostFailure(error, `create the directory ${path}`);
  }
}
