import { spawnSync } from 'node:child_process';
import { root } from '../../../tools/suite/cli.ts';
import { benchOptions } from '../run/options.ts';

/**
 * Injects faults into replicas, PostgreSQL, NATS, and the connections between them, and checks what clients saw. `npm
 * test` does so with 10 faults and few agents. `--seed` repeats the faults of a run. `--smoke` only lists the test.
 *
 *     npm run soak -- replicas [--faults 500] [--real 50] [--simulated 2000] [--every 8000] [--seed N]
 *
 * `--every`: mean milliseconds between the starts of two faults.
 */
const { faults, real, simulated, writers, every, seed, smoke } = benchOptions({
  numbers: { faults: [500, 10], real: [50, 4], simulated: [2_000, 20], writers: [8, 3], every: [8_000, 2_500] },
  texts: { seed: null },
});
const agents = { realAgents: real, simulatedAgents: simulated, applyEveryMs: 5_000, runEveryMs: 60_000 };
const sizes = { ...agents, faults, writers, everyMs: every };
// Hours, in milliseconds.
const limits = ['--testTimeout=86400000'];
const { status } = spawnSync(
  process.execPath,
  [
    'node_modules/vitest/vitest.mjs',
    ...(smoke ? ['list', '--filesOnly'] : ['run', ...limits]),
    'e2e/replicas-faults.test.ts',
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      MUSTER_FAULTS_SIZES: JSON.stringify(sizes),
      ...(seed === null ? {} : { MUSTER_FAULTS_SEED: seed }),
    },
  },
);
process.exitCode = status ?? 1;
