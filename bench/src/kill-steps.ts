import { spawnSync } from 'node:child_process';
import { groups } from '../../tools/suite/alternating-files.ts';
import { root } from '../../tools/suite/cli.ts';
import { benchOptions } from './run/options.ts';

/**
 * Runs all cases, instead of a sample, of the tests that kill a program, apply random modules, check the pages of the
 * console, or run benches, and all files that alternate in `npm test`. Also runs the test with a link that carries 38,000 results, and the test with agents that fetch
 * 200 MiB. `--smoke` only lists the tests.
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
    'e2e/providers-',
    'e2e/locale.test.ts',
    'e2e/selinux.test.ts',
    'e2e/firewalls.test.ts',
    'e2e/acl.test.ts',
    'e2e/attributes.test.ts',
  ],
  'e2e/files-beside-modules.test.ts',
  'e2e/npm-start.test.ts',
  ...[
    'e2e/browser/',
    'e2e/sshd.test.ts',
    'e2e/service-triggers.test.ts',
    'e2e/secrets.test.ts',
    'e2e/terminal.test.ts',
  ],
  ...[
    'e2e/completion.test.ts',
    'orchestrator/src/store/transfer/transfer.contract.test.ts',
    'bench/src/fuzz/fuzz.test.ts',
  ],
  ...['tools/new/new.test.ts', 'agent/src/converge/report/live-output.test.ts'],
  ...groups.flat(),
  // These tests use only one database in `npm test`.
  ...['orchestrator/src/domain/', 'orchestrator/src/http/'],
  ...['e2e/hosts/language.test.ts', 'e2e/modules-together.test.ts', 'e2e/values.test.ts'],
];
const limits = ['--testTimeout=3600000'];
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', ...(smoke ? ['list', '--filesOnly'] : ['run', ...limits]), ...files],
  { cwd: root, stdio: 'inherit', env: { ...process.env, MUSTER_EVERY_STEP: '1' } },
);
process.exitCode = status ?? 1;
