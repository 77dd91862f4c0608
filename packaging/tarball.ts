import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Tarball {
  /** Name of the top-level folder, which contains all files. */
  readonly name: string;
  /** Files by path in that folder: the path of a file to copy, or the content. */
  readonly files: Readonly<Record<string, { copy: string; mode?: number } | { content: string; mode?: number }>>;
  /** Modification time of all files, in Unix seconds. */
  readonly epoch: number;
  /** Gzip level, 1 to 9. */
  readonly level: number;
}

/**
 * Writes a tarball. The tarball is byte-identical for the same files, regardless of the user, path, and time of the
 * build.
 */
export function writeTarball({ name, files, epoch, level }: Tarball, path: string): void {
  const work = mkdtempSync(`${path}.tmp-`);
  try {
    for (const [file, what] of Object.entries(files)) {
      const path = join(work, name, file);
      mkdirSync(dirname(path), { recursive: true });
      if ('copy' in what) copyFileSync(what.copy, path);
      else writeFileSync(path, what.content);
      chmodSync(path, what.mode ?? 0o644);
    }
    const reproducible = [
      '--sort=name',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      `--mtime=@${epoch}`,
      '--mode=go=u-w',
    ];
    execFileSync(
      'tar',
      [...reproducible, '--use-compress-program', `gzip -n${level}`, '-cf', join(work, 'tar'), name],
      {
        cwd: work,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    );
    copyFileSync(join(work, 'tar'), path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
