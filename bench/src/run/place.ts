import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { root } from '../../../tools/suite/cli.ts';
import type { Place } from './results.ts';

/** Graph of the last recorded soak, relative to the root. */
export const soakGraphFile = 'docs/performance-soak.svg';

/** Files that a recorded run changes, relative to the root. They do not count as changes to the measured code. */
export const recordedFiles = ['bench/results.json', 'docs/performance.md', soakGraphFile];

/** Returns the commit of the measured code, with `+` if there are uncommitted changes; `unknown` outside of a clone. */
export function commitOfRun(): string {
  const outside = ['--', '.', ...recordedFiles.map((path) => `:!${path}`)];
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changed = git('status', '--porcelain', ...outside) !== '';
    return `${git('log', '-1', '--format=%h', ...outside)}${changed ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}

/** Returns the machine, the time, and the load, which are recorded with every figure. */
export function placeOfRun(commit: string): Place {
  const [processor] = cpus();
  return {
    commit,
    machine: `${cpus().length} × ${processor?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB of memory, Linux ${release().split('-')[0]}, Node ${process.version}`,
    at: new Date().toISOString(),
    load: loadavg()[0] ?? 0,
  };
}
