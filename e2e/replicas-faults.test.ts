import { expect } from 'vitest';
import { seededRandom } from '../lib/test/sampled.ts';
import { PostgresMissing } from '../orchestrator/test/databases/postgres-server.ts';
import { natsMissing } from '../orchestrator/test/nats/nats-server.ts';
import { type LoopSizes, runFaultLoop } from './faults/fault-loop.ts';
import { test } from './harness.ts';

/** Sizes in `npm test`, in about a minute. `npm run soak -- replicas` sets others. */
const usual: LoopSizes = {
  ...{ replicas: 3, realAgents: 4, simulatedAgents: 20, writers: 3 },
  ...{ faults: 10, everyMs: 2_500, applyEveryMs: 300, runEveryMs: 500 },
};

test('replicas lose nothing and do nothing twice while processes are killed and connections cut', async ({
  stage,
  skip,
}) => {
  const missing = natsMissing();
  if (missing !== null) skip(missing);
  const { MUSTER_FAULTS_SEED, MUSTER_FAULTS_SIZES = '{}' } = process.env;
  const seed = Number(MUSTER_FAULTS_SEED ?? Math.floor(seededRandom('faults of replicas') * 2 ** 32));
  console.log(`faults: MUSTER_FAULTS_SEED=${seed}`);
  const sizes = { ...usual, ...(JSON.parse(MUSTER_FAULTS_SIZES) as Partial<LoopSizes>) };
  try {
    const { violations, file, times } = await runFaultLoop(stage, sizes, seed, (line) => console.log(line));
    console.log(times);
    expect(violations.slice(0, 20), `history: ${file}`).toEqual([]);
  } catch (error) {
    if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
    skip(error.message);
  }
});
