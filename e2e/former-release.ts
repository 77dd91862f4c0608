import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { migrations } from '../orchestrator/src/store/migrations/index.ts';
import { root } from '../tools/suite/cli.ts';
import { missing } from './requirements.ts';
import { copyPackages } from './working-copy.ts';

/**
 * Muster as it was before the newest migration, from the history of the repository. It stands for the previous release,
 * because none has been published yet.
 */

const folder = 'orchestrator/src/store/migrations';
const newest = migrations.at(-1)!;

/** The programs, and the parts of the repository that are needed to run them. */
const parts = [
  'agent',
  'cli',
  'client',
  'lib',
  'orchestrator',
  'protocol',
  'tools',
  'package.json',
  'package-lock.json',
];

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 512 * 1024 * 1024 }).trim();

/** Returns the reason why the former release cannot run with this one on a database; null if it can. */
export function formerReleaseMissing(): string | null {
  const reason = missing('git');
  if (reason !== null) return reason;
  if (git('rev-parse', '--is-shallow-repository') === 'true') return 'needs the history of the repository';
  return newest.compatibleFrom === undefined || newest.compatibleFrom >= newest.version
    ? `schema version ${newest.version} is not compatible with the releases before it`
    : null;
}

/** The schema version of the former release. */
export const formerSchema = newest.version - 1;

/**
 * Extracts the former release.
 * @param to an empty directory
 * @returns a command that executes `muster` of the former release in place of the program after it, and the commit
 */
export function extractFormerRelease(to: string): { within: readonly string[]; commit: string } {
  const number = String(newest.version).padStart(4, '0');
  const file = readdirSync(join(root, folder)).find((name) => name.startsWith(`${number}-`));
  if (file === undefined) throw new Error(`${folder} has no file for schema version ${newest.version}`);
  const added = git('log', '-1', '--diff-filter=A', '--format=%H', '--', `${folder}/${file}`);
  // Without a commit, the newest migration is part of the uncommitted changes.
  const commit = git('rev-parse', '--short', added === '' ? 'HEAD' : `${added}~1`);
  const archive = execFileSync('git', ['archive', '--format=tar', commit, '--', ...parts], {
    cwd: root,
    maxBuffer: 512 * 1024 * 1024,
  });
  execFileSync('tar', ['-x', '-C', to], { input: archive });
  copyPackages(to);
  return { within: ['sh', '-c', 'shift; exec "$0" "$@"', join(to, 'cli/bin/muster')], commit };
}
