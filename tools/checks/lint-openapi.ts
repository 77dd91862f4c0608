// Checks docs/openapi.json against the rules in redocly.yaml. Fails on errors and on warnings.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root } from '../suite/cli.ts';

const linter = join(dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json')), 'bin', 'cli.js');
const { status, stdout, stderr, error } = spawnSync(
  process.execPath,
  [linter, 'lint', '--config', join(root, 'redocly.yaml'), '--max-problems', '50', join(root, 'docs', 'openapi.json')],
  {
    cwd: root,
    encoding: 'utf8',
    // Disables network requests.
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  },
);
const said = `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`;
if (status !== 0 || /\bwarnings?\b/i.test(said)) {
  console.error(said);
  process.exitCode = 1;
}
