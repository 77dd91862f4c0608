// Checks commit messages against commitlint.config.js. Skips commits up to `since`, which precede the rules.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../suite/cli.ts';

const since = '9e56236';

const run = (command: string, args: string[]) => spawnSync(command, args, { cwd: root, encoding: 'utf8' });
// False in a source archive without history, and in a shallow clone that lacks this commit.
const hasHistory = run('git', ['merge-base', '--is-ancestor', since, 'HEAD']).status === 0;
if (hasHistory) {
  const commitlint = join(root, 'node_modules/.bin/commitlint');
  const { status, stdout, stderr } = run(commitlint, ['--from', since, '--to', 'HEAD', '--color', 'false']);
  if (status !== 0) {
    console.error(`${stdout}${stderr}`);
    process.exitCode = 1;
  }
}
