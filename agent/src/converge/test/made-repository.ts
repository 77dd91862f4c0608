import { spawnSync } from 'node:child_process';

/** Runs shell commands with a Git identity, so that they can commit. @returns their output */
export function commit(folder: string, text: string): string {
  const who = { NAME: 'Ann', EMAIL: 'ann@example.org', DATE: '2026-01-01T00:00:00Z' };
  const identity = Object.entries(who).flatMap(([name, value]) => [
    [`GIT_AUTHOR_${name}`, value],
    [`GIT_COMMITTER_${name}`, value],
  ]);
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', text], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: '/nonexistent', ...Object.fromEntries(identity) },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}

/**
 * Creates a repository with a tag `v1`, and a later commit on the branch `main`.
 * @returns its path
 */
export function madeRepository(folder: string): string {
  commit(
    folder,
    'git init -q -b main app; cd app; echo 1 > f; git add f; git commit -qm one; git tag -am v1 v1; echo 2 > f; git commit -qam two',
  );
  return `${folder}/app`;
}
