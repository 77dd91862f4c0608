import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { removeDirectory, temporaryDirectory } from './agent.ts';

/**
 * Creates an archive with the system's programs.
 * @param fill shell code that creates the members, in an empty directory
 * @param pack shell code that writes the archive to "$1"
 */
export function madeArchive(fill: string, pack = 'tar -czf "$1" *'): Buffer {
  const root = temporaryDirectory();
  try {
    mkdirSync(`${root}/d`);
    const { status, stderr } = spawnSync('sh', ['-euc', `${fill}\n${pack}`, 'sh', `${root}/archive`], {
      cwd: `${root}/d`,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    return readFileSync(`${root}/archive`);
  } finally {
    removeDirectory(root);
  }
}
