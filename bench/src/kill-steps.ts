import { spawnSync } from 'node:child_process';
import { root } from '../../tools/suite/cli.ts';
import { benchOptions } from './run/options.ts';

/**
 * Runs all cases, instead of a sample, of the tests that kill a program, apply random modules, or run benches. Also
 * runs the test with a link that carries 38,000 results, and the test with agents that fetch 200 MiB. `--smoke` only
 * lists the tests.
 *
 * npm run soak -- kill-steps
 */
const { smoke } = benchOptions({ numbers: {} });
const files = [
  'agent/src/converge/agreement.contract.test.ts',
  'agent/src/converge/crash.contract.test.ts',
  'agent/src/converge/condition.contract.test.ts',
  'agent/src/resources/provider/provider.contract.test.ts',
  ...[
    'e2e/providers-1.test.ts',
    'e2e/providers-2.test.ts',
    'e2e/package-apt.test.ts',
    'e2e/package-dnf.test.ts',
    'e2e/package-safety.test.ts',
  ],
  ...['e2e/busy-agent.test.ts', 'e2e/kill.test.ts', 'e2e/files-beside-modules.test.ts', 'e2e/benches/'],
];
const limits = ['--testTimeout=3600000'];
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', ...(smoke ? ['list', '--filesOnly'] : ['run', ...limits]), ...files],
  { cwd: root, stdio: 'inherit', env: { ...process.env, MUSTER_EVERY_STEP: '1' } },
);
process.exitCode = status ?? 1;
