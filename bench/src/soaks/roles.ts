import { spawnSync } from 'node:child_process';
import { root } from '../../../tools/suite/cli.ts';
import { benchOptions } from '../run/options.ts';

/**
 * Applies and removes all modules in `examples/roles` instead of a sample. `--smoke` only lists the test.
 *
 * npm run soak -- roles
 */
const { smoke } = benchOptions({ numbers: {} });
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', ...(smoke ? ['list', '--filesOnly'] : ['run']), 'e2e/hosts/roles.test.ts'],
  { cwd: root, stdio: 'inherit', env: { ...process.env, MUSTER_EVERY_ROLE: '1' } },
);
process.exitCode = status ?? 1;
