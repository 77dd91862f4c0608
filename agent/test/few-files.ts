import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

/** Runs an action with a limit on the open files of this process, and restores the limit afterward. */
export async function withFilesLeft<Result>(left: number, act: () => Promise<Result>): Promise<Result> {
  const limit = (...options: string[]) => execFileSync('prlimit', ['--pid', `${process.pid}`, ...options]).toString();
  const before = limit('--nofile', '--output=SOFT', '--noheadings').trim();
  limit('--nofile=500:');
  const openFds: number[] = [];
  try {
    try {
      for (;;) openFds.push(openSync('/dev/null', 'r'));
    } catch {
      for (const fd of openFds.splice(-left)) closeSync(fd);
    }
    return await act();
  } finally {
    for (const fd of openFds) closeSync(fd);
    limit(`--nofile=${before}:`);
  }
}
