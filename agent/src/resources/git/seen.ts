import { posix } from 'node:path';
import { HostFailure } from '../../host/failure.ts';
import { entryNamesOf, inodeOf, type Stats, statusOf } from '../../host/trees/entries.ts';
import { besideName } from '../../host/trees/tree-names.ts';
import { folderOf, trustedPath } from '../archive/place.ts';
import type { Circumstances, Database, Difference, Machine } from '../provider/provider.ts';
import type { ScriptAccount } from '../script/launch.ts';
import { prerequisitesOf } from '../script/prerequisites.ts';
import { type Declared, gitFailure, runGit } from './run-git.ts';

export interface SeenGit {
  /** The commit to which `revision` resolves; null if the path must not exist, or if the commit is not known yet. */
  wanted: string | null;
  found: 'absent' | 'empty directory' | 'working copy' | 'other';
  /** Owner and permissions of an empty directory. */
  directory: { uid: number; gid: number; mode: number } | null;
  copy: SeenCopy | null;
  /** Identifies the object that was at the path before it was declared absent. */
  kept: string | null;
  missing: NonNullable<Difference['awaits']>;
}

export interface SeenCopy {
  /** The checked-out commit; null if there is none. */
  head: string | null;
  /** The checked-out branch, such as refs/heads/main. */
  branch: string | null;
  url: string | null;
  /** The commit that the agent checked out last. */
  last: string | null;
  /** The first changed files. `changes` is the total number. */
  changed: string[];
  changes: number;
  /** Whether the checked-out commit may exist only on this machine. */
  hasOwnCommits: boolean;
  /** An untracked file that the removal would delete; null if there is none, or if no removal is planned. */
  untracked: string | null;
}

const observeMs = 2 * 60_000;
const shownFiles = 5;

/**
 * Prints the URL and the commit that the agent last checked out as lines, then the status with its entries separated by
 * NUL. Starting a program takes as long as reading a small working copy, so the shell itself reads the reference if it
 * has its own file. Like git, the shell does not read files of another user, who could replace one with a link to a
 * device. Argument: `normal` to include files that are not in the repository, otherwise `no`.
 */
const inspectText = `
file=.git/refs/muster/revision
git config --get remote.origin.url || echo
if { [ -O . ] && [ -O .git ] && [ -f "$file" ] && read -r last <"$file"; } 2>/dev/null && [ "\${#last}" = 40 ]
then printf '%s\\n' "$last"
else git rev-parse -q --verify refs/muster/revision || echo; fi
exec git status --porcelain=v2 --branch -z "--untracked-files=$1" --no-renames`;

/** Prints the checked-out commit if no branch or tag in the repository contains it. */
const ownCommitText = "git rev-list -n 1 HEAD --not --remotes --tags --glob='refs/muster/*' -- 2>/dev/null || true";

export async function lookAtGit(
  resource: Declared,
  { purpose }: Pick<Circumstances, 'purpose'>,
  machine: Machine,
): Promise<SeenGit> {
  const { body } = resource;
  const { path } = body;
  const { account, missing } = await prerequisitesOf({ program: 'git', ...userOf(resource) }, machine);
  const seen: SeenGit = { wanted: null, found: 'absent', directory: null, copy: null, kept: null, missing };
  const folder = trustedPath(machine.walk, folderOf(path), 'null');
  const name = posix.basename(path);
  const stats = folder === null ? null : statusOf(`${folder}/${name}`);
  const kept = folder === null ? null : inodeOf(statusOf(`${folder}/${besideName(name, 'before')}`));
  const found = folder === null ? 'absent' : typeOf(`${folder}/${name}`, stats);
  const directory = found === 'empty directory' && stats !== null ? ownershipOf(stats) : null;
  if (missing.length > 0) return { ...seen, found, directory, kept };
  const copy = found === 'working copy' ? await lookAtCopy(resource, account, machine) : null;
  const wanted =
    body.ensure === 'absent'
      ? null
      : purpose === 'drift'
        ? (copy?.last ?? body.revision)
        : await commitOf(resource, account, machine);
  return { ...seen, wanted, found, directory, copy, kept };
}

/** Returns the user, unless the agent runs as that user. */
export const userOf = ({ body: { user } }: Declared): { user: string } | object =>
  user == null || user === 'root' ? {} : { user };

function typeOf(path: string, stats: Stats | null): SeenGit['found'] {
  if (stats === null) return 'absent';
  if (!stats.isDirectory()) return 'other';
  if (statusOf(`${path}/.git`) !== null) return 'working copy';
  return entryNamesOf(path).length === 0 ? 'empty directory' : 'other';
}

const ownershipOf = ({ uid, gid, mode }: Stats) => ({ uid, gid, mode: mode & 0o7777 });

async function lookAtCopy(resource: Declared, account: ScriptAccount | null, machine: Machine): Promise<SeenCopy> {
  const { path, ensure } = resource.body;
  const read = async (text: string, ...args: string[]) => {
    const result = await runGit(resource, { text, args, directory: path, timeLimit: observeMs, account }, machine);
    if (result.exitCode !== 0) throw gitFailure(`read the working copy ${path}`, result);
    return result.stdout;
  };
  const [url = '', last = '', ...rest] = (await read(inspectText, ensure === 'absent' ? 'normal' : 'no')).split('\n');
  const { head, branch, changed, untracked } = parseStatus(rest.join('\n'));
  const hasOwnCommits = head !== null && head !== last && (await read(ownCommitText)) !== '';
  return {
    ...{ head, branch, url: url || null, last: /^[0-9a-f]{40}$/.test(last) ? last : null },
    ...{ changed: changed.slice(0, shownFiles), changes: changed.length, hasOwnCommits, untracked },
  };
}

/** @param text output of `git status --porcelain=v2 --branch -z`; see git-status(1) */
function parseStatus(text: string): Pick<SeenCopy, 'head' | 'branch' | 'untracked'> & {
  /** All changed files. */
  changed: string[];
} {
  const entries = text.split('\0');
  const header = (name: string) =>
    entries.find((entry) => entry.startsWith(`# branch.${name} `))?.slice(`# branch.${name} `.length) ?? '';
  const [head, branch] = [header('oid'), header('head')];
  // The path follows the fields of a changed or an unmerged file.
  const fields: Readonly<Record<string, number>> = { '1': 8, u: 10 };
  const changed = entries.flatMap((entry) => {
    const count = fields[entry.split(' ', 1)[0] ?? ''];
    return count === undefined ? [] : [entry.split(' ').slice(count).join(' ')];
  });
  return {
    head: head === '(initial)' ? null : head || null,
    branch: branch === '(detached)' ? null : `refs/heads/${branch}`,
    changed,
    untracked: entries.find((entry) => entry.startsWith('? '))?.slice(2) ?? null,
  };
}

/**
 * Commits to which revisions resolve, as returned by the repositories. Cached, because several resources may declare
 * the same revision.
 */
const askedCommits: Database<Map<string, Promise<string>>> = {
  name: 'commits of git repositories',
  read: () => new Map(),
};

/** Discards the resolved commits, because a working copy may serve as the repository of another working copy. */
export const commitsChanged = (machine: Machine): void => machine.stale(askedCommits);

async function commitOf(resource: Declared, account: ScriptAccount | null, machine: Machine): Promise<string> {
  const { url, revision, user, key } = resource.body;
  const known = await machine.database(askedCommits);
  const name = JSON.stringify([url, revision, user, key]);
  const asked = known.get(name) ?? askForCommit(resource, account, machine);
  known.set(name, asked);
  asked.catch(() => known.delete(name));
  return asked;
}

/**
 * Queries the repository for the commit to which the declared revision resolves. A tag takes precedence over a branch
 * of the same name.
 */
async function askForCommit(resource: Declared, account: ScriptAccount | null, machine: Machine): Promise<string> {
  const { revision, url } = resource.body;
  if (/^[0-9a-f]{40}$/.test(revision)) return revision;
  const [tag, branch] = [`refs/tags/${revision}`, `refs/heads/${revision}`];
  const run = {
    text: 'exec git ls-remote -q -- "$@"',
    args: [url, `${tag}^{}`, tag, branch],
    ...{ directory: '/', timeLimit: observeMs, account },
  };
  const result = await runGit(resource, run, machine);
  if (result.exitCode !== 0) throw gitFailure(`read the repository ${url}`, result);
  const commits = new Map(result.stdout.split('\n').map((line) => [line.slice(41), line.slice(0, 40)]));
  const commit = commits.get(`${tag}^{}`) ?? commits.get(tag) ?? commits.get(branch);
  if (commit === undefined || !/^[0-9a-f]{40}$/.test(commit))
    throw new HostFailure(`the repository ${url} has neither a tag nor a branch ${revision}`);
  return commit;
}
