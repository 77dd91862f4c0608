import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { root } from '../tools/suite/cli.ts';

/**
 * Copies all files that git does not ignore, with uncommitted changes.
 * @param installed whether to also add the installed packages, and the console if it has been built
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
  copyPackages(to);
  // Copies the console, because building it takes seconds.
  if (existsSync(join(root, '.cache/console')))
    cpSync(join(root, '.cache/console'), join(to, '.cache/console'), { recursive: true });
  const stamp = join(to, 'node_modules/.muster-stamp');
  rmSync(stamp, { force: true });
  writeFileSync(stamp, execFileSync('cksum', { input: readFileSync(join(to, 'package-lock.json')) }));
}

/** Copies the installed packages. The links to the workspaces lead to those of the copy. */
export function copyPackages(to: string): void {
  try {
    execFileSync('cp', ['-al', 'node_modules', to], { cwd: root, stdio: 'pipe' });
  } catch {
    // Hard links fail if the copy is on another file system.
    rmSync(join(to, 'node_modules'), { recursive: true, force: true });
    cpSync(join(root, 'node_modules'), join(to, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  }
}

/** Returns the search path without `node_modules/.bin`, so that programs use the machine's own Node.js. */
export const plainPath = (): string =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
    .join(delimiter);
