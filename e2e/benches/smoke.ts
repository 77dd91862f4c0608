import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { benches, soaks } from '../../bench/src/run/programs.ts';
import { sampled } from '../../lib/test/sampled.ts';
import { root } from '../../tools/suite/cli.ts';
import { missing, type Requirement } from '../requirements.ts';
import { left, temporary } from './folders.ts';

const needs: Readonly<Record<string, readonly Requirement[]>> = {
  console: ['browser'],
  converge: ['root', 'namespaces', 'hosts'],
};

const all = [
  ...Object.keys(benches).map((name) => ({ script: 'main', name })),
  ...Object.keys(soaks)
    .filter((name) => !Object.values(benches).some(({ program }) => program === soaks[name]!.program))
    .map((name) => ({ script: 'soak', name })),
];

/** Number of test files. The files run in parallel, and each file runs its share of the benches in sequence. */
const parts = 3;

/** Number of benches that `npm test` runs in each file, selected at random. `npm run soak -- kill-steps` runs all. */
const sample = 1;

/** @param part index of the test file, from 0 */
export function runsInSmokeForm(part: number): void {
  const own = all.filter((_, i) => i % parts === part);
  describe.each(sampled(own, sample))('$script $name', ({ script, name }) => {
    test('the bench succeeds with --smoke, regardless of the measured values, and leaves no files', (context) => {
      // The benches read /proc.
      const reason = missing('linux', ...(needs[name] ?? []));
      context.skip(reason !== null, reason ?? '');
      const folder = temporary();
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [join(root, `bench/src/${script}.ts`), ...(script === 'main' ? ['all', '--only', name] : [name]), '--smoke'],
        { cwd: root, encoding: 'utf8', env: { ...process.env, TMPDIR: folder } },
      );
      expect(status, stdout + stderr).toBe(0);
      expect(stdout).not.toMatch(/ (met|missed)$/im);
      if (script === 'main') expect(stdout).toMatch(/^commit \S+$/m);
      expect(left(folder)).toEqual([]);
    });
  });
}
