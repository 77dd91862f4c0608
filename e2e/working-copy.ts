import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { root } from '../tools/suite/cli.ts';

/**
 * Copies the repository like a clone: files that git tracks or would add, with today's changes.
 * @param installed also adds the packages as hard links, so that deleting a file in one copy keeps it in the other, and
 * the console if it is built
 */
export function copyRepository(to: string, installed: boolean): void {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter(Boolean)) {
    const stats = statSync(join(root, file), { throwIfNoEntry: false });
    if (!stats?.isFile()) continue;
    mkdirSync(dirname(join(to, file)), { recursive: true });
    copyFileSync(join(root, file), join(to, file));
  }
  if (!installed) return;
  try {
    execFileSync('cp', ['-al', 'node_modules', to], { cwd: root, stdio: 'pipe' });
  } catch {
    // The copy is on another file system, so hard links fail.
    rmSync(join(to, 'node_modules'), { recursive: true, force: true });
    cpSync(join(root, 'node_modules'), join(to, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  }
  // Copies the console, which was built from the same sources. Building it takes seconds, and most tests do not need
  // that.
  if (existsSync(join(root, '.cache/console')))
    cpSync(join(root, '.cache/console'), join(to, '.cache/console'), { recursive: true });
  const stamp = join(to, 'node_modules/.muster-stamp');
  rmSync(stamp, { force: true });
  writeFileSync(stamp, execFileSync('cksum', { input: readFileSync(join(to, 'package-lock.json')) }));
}

/** The search path of a user's shell: the machine's own Node, not the packaged one. */
export const plainPath = (): string =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
    .join(delimiter);
